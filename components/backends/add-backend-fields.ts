/** What a person wrote into the form for a new backend, read into what the server takes. */
import { REMOTE_KINDS, type RemoteKind } from '../../server/core/inference';

export interface AddBackendFields {
  /** Addresses, parted by blanks, commas or lines. */
  urls: string;
  name: string;
  kind: string;
  model: string;
  key: string;
  /** Signs requests for new weights; of trtllm-serve alone. */
  controlKey: string;
  tokenizer: string;
  contextLength: string;
  maxInFlight: string;
}

export const EMPTY_FIELDS: AddBackendFields = {
  urls: '',
  name: '',
  kind: 'auto',
  model: '',
  key: '',
  controlKey: '',
  tokenizer: '',
  contextLength: '',
  maxInFlight: '',
};

/** @param found what was asked last, and what it is; null before */
export function readAddBackend(fields: AddBackendFields, found: { url: string; kind: RemoteKind | null } | null) {
  const urls = fields.urls.split(/[\s,]+/).filter((part) => part !== '');
  const wrongUrl = urls.find((url) => !isHttpUrl(url)) ?? null;
  const kind: RemoteKind | 'auto' = REMOTE_KINDS.find((known) => known === fields.kind) ?? 'auto';
  const kindFound = kind === 'auto' && found?.url === urls[0] ? (found?.kind ?? null) : null;
  const takesControlKey = (kindFound ?? kind) === 'tensorrt-llm';
  const numbers = { contextLength: wholeNumber(fields.contextLength), maxInFlight: wholeNumber(fields.maxInFlight) };
  const wrongNumber =
    numbers.contextLength === 'wrong' ? 'contextLength' : numbers.maxInFlight === 'wrong' ? 'maxInFlight' : null;
  const given = {
    kind,
    ...(fields.model.trim() ? { model: fields.model.trim() } : {}),
    ...(fields.tokenizer.trim() ? { tokenizer: fields.tokenizer.trim() } : {}),
    ...(typeof numbers.contextLength === 'number' ? { contextLength: numbers.contextLength } : {}),
    ...(fields.key ? { key: fields.key } : {}),
    ...(takesControlKey && fields.controlKey ? { controlKey: fields.controlKey } : {}),
  };
  return {
    urls,
    wrongUrl,
    wrongNumber,
    takesControlKey,
    ok: urls.length > 0 && wrongUrl === null && wrongNumber === null,
    check: (url: string) => ({ url, ...given }),
    /** Unchecked, it is of the kind that was found: nobody asks the servers again. */
    add: (unchecked: boolean) => ({
      name: fields.name.trim(),
      urls,
      ...given,
      kind: (unchecked && kindFound) || kind,
      ...(typeof numbers.maxInFlight === 'number' ? { maxInFlight: numbers.maxInFlight } : {}),
      unchecked,
    }),
  } as const;
}

/** `http://gpu-1.lab:8000/v1` → `gpu-1`, or `gpu-1-2` where there is one called so. */
export function suggestedName(url: string, taken: ReadonlySet<string>): string {
  const { hostname, port } = new URL(url);
  const host = /^[\d.]+$|^\[/.test(hostname) ? hostname.replace(/[[\]]/g, '') : (hostname.split('.')[0] ?? hostname);
  const name = /^(localhost|127\.|::1)/.test(host) ? `local-${port || '80'}` : host;
  let free = name;
  for (let n = 2; taken.has(free); n++) free = `${name}-${n}`;
  return free;
}

function isHttpUrl(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol);
  } catch {
    return false;
  }
}

function wholeNumber(text: string): number | null | 'wrong' {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  return /^\d{1,9}$/.test(trimmed) && Number(trimmed) > 0 ? Number(trimmed) : 'wrong';
}
