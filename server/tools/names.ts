/** The names a skill may put into `available_tools`. */
import { createToolRegistry } from './registry';

export const TOOL_NAMES: readonly string[] = createToolRegistry().names();
