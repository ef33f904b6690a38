/** Answers in JSON, and the one mapping from a failure to an HTTP answer. */
import type { ServerResponse } from 'node:http';
import { ERROR_EDGES } from '../core/errors';
import { explainError } from '../observability/explain-error';
import type { Logger } from '../observability/logger';

export function sendJson(res: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  res.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
    'Content-Length': Buffer.byteLength(text),
  });
  res.end(res.req.method === 'HEAD' ? undefined : text);
}

/**
 * `{ error: { code, message } }` with the family's status. When the answer has already begun, the socket is destroyed:
 * half an answer must never look like a whole one.
 */
export function sendError(res: ServerResponse, error: unknown, logger: Logger, where: string): void {
  const { code, message } = explainError(error, logger, where);
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  for (const name of ['Content-Disposition', 'Content-Length', 'Content-Encoding', 'ETag']) res.removeHeader(name);
  // An unread body must not be taken for the next request.
  if (!res.req.complete) res.setHeader('Connection', 'close');
  sendJson(res, code === 'internal' ? 500 : ERROR_EDGES[code].http, { error: { code, message } });
}

/** 405 with the methods that work. */
export function sendMethodNotAllowed(res: ServerResponse, allowed: string): void {
  res.setHeader('Allow', allowed);
  sendJson(res, 405, { error: { code: 'invalid', message: `This address takes ${allowed} only.` } });
}
