/** The forms by name. */
import type { ActionFormat, ActionFormatName } from './format';
import { harmony } from './harmony';
import { hermes } from './hermes';
import { llama3 } from './llama3';
import { mistral } from './mistral';
import { react } from './react-format';

const FORMATS: Record<ActionFormatName, ActionFormat> = { react, hermes, llama3, mistral, harmony };

export const formatNamed = (name: ActionFormatName): ActionFormat => FORMATS[name];
