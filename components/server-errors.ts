import { TRPCClientError } from '@trpc/client';

/** What a page needs to know about a failed call. */
export interface ServerProblem {
  /** tRPC's word for it (`NOT_FOUND`, `UNAUTHORIZED`, `BAD_REQUEST`…); null when no server answered. */
  code: string | null;
  /** The server's sentence. */
  message: string;
}

export function readServerProblem(error: unknown): ServerProblem {
  if (error instanceof TRPCClientError) {
    const data: unknown = error.data;
    const code = typeof data === 'object' && data !== null && 'code' in data ? String(data.code) : null;
    return { code, message: error.message };
  }
  return { code: null, message: error instanceof Error ? error.message : String(error) };
}

const FINAL_CODES = new Set(['NOT_FOUND', 'UNAUTHORIZED', 'FORBIDDEN', 'BAD_REQUEST', 'CONFLICT', 'PAYLOAD_TOO_LARGE']);

/** Asking again may help: nobody answered, or the server said it is not able to now. */
export function isWorthAsking(error: unknown): boolean {
  const { code } = readServerProblem(error);
  return code === null || !FINAL_CODES.has(code);
}

/** What an address names does not exist, or could not exist: the id is none, the name holds what no name may. */
export function namesNothing(error: unknown): boolean {
  const { code } = readServerProblem(error);
  return code === 'NOT_FOUND' || code === 'BAD_REQUEST';
}

/** Only a path of this site may follow a sign-in: `//host`, `/\host` and `javascript:` may not. */
export function safeNextPath(next: string | null): string {
  if (!next?.startsWith('/') || /[\\\p{Cc}]/u.test(next) || next.startsWith('//')) return '/';
  return next;
}
