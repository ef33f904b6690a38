/** What callers may send to the verbs of backends, for the router and the command line alike. */
import { z } from 'zod';
import { REMOTE_KINDS, type RemoteKind } from '../../core/inference';
import { MAX_REPLICAS, remoteSettingsSchema, serverUrlSchema } from '../../core/inference-settings';
import { MIXED } from '../../core/tokens/chunk';
import { cursorSchema, isStorable, limitSchema, nameSchema, UNSTORABLE } from '../inputs';

const settings = remoteSettingsSchema.shape;
const kinds = ['auto', ...REMOTE_KINDS] as const satisfies readonly (RemoteKind | 'auto')[];

/** Goes into a header, so it can hold nothing but visible ASCII. Never echoed. */
const keySchema = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(8192, 'must not be longer than 8192 characters')
  .regex(/^[\x21-\x7e]+$/, 'may hold visible ASCII characters only');

/** A file or folder as the server's own machine calls it. */
const pathSchema = z.string().trim().min(1, 'must not be empty').max(4096).refine(isStorable, UNSTORABLE);

/** What is found out by asking; said only where the server cannot tell. */
const about = {
  model: settings.model,
  /** Folder with the model's tokenizer on the machine of the studio. */
  tokenizer: settings.tokenizer,
  contextLength: settings.contextLength,
};

const urlsSchema = z
  .array(serverUrlSchema)
  .max(MAX_REPLICAS)
  .refine((urls) => new Set(urls).size === urls.length, 'each address may stand there once');

const embeddedInput = z.object({
  name: nameSchema,
  kind: z.literal('embedded'),
  settings: z.object({
    /** A .gguf file, relative to the folder of package.json, or absolute. */
    modelPath: z.string().min(1).max(4096),
  }),
  controlKey: z.undefined('a control key is for servers of the kind tensorrt-llm').optional(),
  /** Left as it is when absent; a new backend is then not the default. */
  isDefault: z.boolean().optional(),
});

const remoteInput = z.object({
  name: nameSchema,
  kind: z.enum(kinds),
  /** One address a replica; all serve the same model. */
  urls: urlsSchema.min(1, 'name at least one address'),
  ...about,
  maxInFlight: settings.maxInFlight,
  tokensInFlight: settings.tokensInFlight,
  /** For all replicas. Absent: the one that is stored, when there is one. */
  key: keySchema.optional(),
  /** Signs requests for new weights to servers of the kind tensorrt-llm. Absent: the one that is stored. */
  controlKey: keySchema.optional(),
  isDefault: z.boolean().optional(),
  /** Save it without asking the servers. */
  unchecked: z.boolean().default(false),
});

export const addBackendInput = z.discriminatedUnion('kind', [embeddedInput, remoteInput]);
export type RemoteBackendInput = z.output<typeof remoteInput>;

export const changeBackendInput = z.object({
  name: nameSchema,
  addUrls: urlsSchema.default([]),
  removeUrls: urlsSchema.default([]),
  /** In place of the stored one; null forgets it. For all replicas, or for `keyFor` alone. */
  key: keySchema.nullable().optional(),
  keyFor: serverUrlSchema.optional(),
  /** In place of the stored one; null forgets it. */
  controlKey: keySchema.nullable().optional(),
  maxInFlight: settings.maxInFlight,
  tokensInFlight: settings.tokensInFlight,
  isDefault: z.boolean().optional(),
  unchecked: z.boolean().default(false),
});

export const checkServerInput = z.object({
  url: serverUrlSchema,
  kind: z.enum(kinds).default('auto'),
  ...about,
  key: keySchema.optional(),
  controlKey: keySchema.optional(),
});

export const backendNameInput = z.object({ name: nameSchema });

export const updateWeightsInput = z.object({
  name: nameSchema,
  source: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('checkpoint'), path: pathSchema }),
    z.object({ kind: z.literal('lora'), path: pathSchema }),
    z.object({ kind: z.literal('external') }),
  ]),
  /** Label of the new weights, written beside every token they sample. */
  version: nameSchema.refine((text) => !text.includes(MIXED), 'must not hold an arrow: that marks mixed generations'),
  inFlight: z.enum(['drain', 'interrupt']).default('drain'),
});

export const listWeightUpdatesInput = z.object({ name: nameSchema, cursor: cursorSchema, limit: limitSchema });
