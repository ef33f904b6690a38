/** What a skill may name: the tools and the scorers that there are. */
import { SCORER_NAMES } from '../../core/rewards/registry';
import type { KnownNames } from '../../core/skills/parse';
import { TOOL_NAMES } from '../../tools/names';

export const KNOWN_NAMES: KnownNames = { tools: TOOL_NAMES, scorers: SCORER_NAMES };
