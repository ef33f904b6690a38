/** What a skill may name: the tools and the scorers that there are. */
import type { KnownNames } from '../../core/skills/parse';
import { createToolRegistry } from '../../tools/registry';

const SCORERS = ['answer_f1', 'reasoning_quality', 'search_progress', 'tool_accuracy'];

export const KNOWN_NAMES: KnownNames = { tools: createToolRegistry().names(), scorers: SCORERS };
