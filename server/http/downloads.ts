/** Answers that are no JSON: tokens in binary, exports as JSON Lines, whole tool outputs as text. */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ServiceContext } from '../services/context';
import { exportRun } from '../services/runs/export-run';
import { getOutput } from '../services/trajectories/get-output';
import { getTokens } from '../services/trajectories/get-tokens';

/** One token sequence in wire form; the browser may keep a final one and asks whether it is still the same. */
export async function sendTokens(call: {
  ctx: ServiceContext;
  req: IncomingMessage;
  res: ServerResponse;
  url: URL;
  trajectoryId: string;
}): Promise<void> {
  const { ctx, req, res, url, trajectoryId } = call;
  const input = { trajectoryId, sequence: url.searchParams.get('sequence') ?? undefined };
  const { wire, final } = await getTokens({ ctx, input });
  res.setHeader('Cache-Control', final ? 'private, no-cache' : 'no-store');
  if (final) {
    // By content: log-probabilities of other policies may be added to a final sequence.
    const tag = `"${createHash('sha256').update(wire).digest('base64url')}"`;
    res.setHeader('ETag', tag);
    if (req.headers['if-none-match'] === tag) {
      res.writeHead(304).end();
      return;
    }
  }
  res.setHeader('X-Tokens-Final', final ? '1' : '0');
  res.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': wire.byteLength });
  res.end(req.method === 'HEAD' ? undefined : wire);
}

/** A whole tool output, always as plain text to be saved: a browser must never draw it. */
export async function sendOutput(call: { ctx: ServiceContext; res: ServerResponse; outputId: string }): Promise<void> {
  const { ctx, res, outputId } = call;
  const { content } = await getOutput({ ctx, input: { outputId } });
  res.writeHead(200, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Disposition': `attachment; filename="${outputId}.txt"`,
    'Content-Length': content.byteLength,
    'Cache-Control': 'private, no-store',
  });
  res.end(res.req.method === 'HEAD' ? undefined : content);
}

/**
 * Streams an export as fast as the reader takes it. The first line is made before the answer begins, so that a refusal
 * is a proper answer; a failure later destroys the socket, and the reader sees a broken download, not a short file.
 */
export async function sendExport(call: {
  ctx: ServiceContext;
  res: ServerResponse;
  url: URL;
  runId: string;
}): Promise<void> {
  const { ctx, res, url, runId } = call;
  const all = ['1', 'true'].includes(url.searchParams.get('all') ?? '');
  const lines = exportRun({ ctx, input: { runId, all } })[Symbol.asyncIterator]();
  const first = await lines.next();
  res.writeHead(200, {
    'Content-Type': 'application/x-ndjson; charset=utf-8',
    'Content-Disposition': `attachment; filename="${runId}.jsonl"`,
    'Cache-Control': 'private, no-store',
  });
  if (res.req.method === 'HEAD') {
    await lines.return?.();
    res.end();
    return;
  }
  async function* text(): AsyncGenerator<string, void> {
    try {
      for (let next = first; !next.done; next = await lines.next()) yield next.value;
    } finally {
      await lines.return?.();
    }
  }
  try {
    await pipeline(Readable.from(text(), { highWaterMark: 16 }), res);
  } catch (error) {
    // A reader who went away is no fault of the export.
    if (res.destroyed && (error as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE') return;
    throw error;
  }
}
