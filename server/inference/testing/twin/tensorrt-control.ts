/** trtllm-serve's three routes for a trainer, signed with a shared key. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { type TwinEngine, TwinError } from './engine';
import type { TwinFaults } from './faults';
import { fieldsOf, textsOf } from './read-body';
import type { TwinReply, TwinRequest, TwinRoute } from './twin-server';

const TAGS = ['kv_cache', 'model', 'sampler', 'draft_model'];
const HEADER = 'x-trtllm-rl-control-auth';

export function controlRoutes(engine: TwinEngine, faults: TwinFaults, key: string): Record<string, TwinRoute> {
  const released = new Set<string>();
  const signed =
    (work: (request: TwinRequest) => Promise<TwinReply>): TwinRoute =>
    async (request) => {
      const expected = `sha256=${createHmac('sha256', key).update(request.raw).digest('hex')}`;
      const given = String(request.headers[HEADER] ?? '');
      if (given.length !== expected.length || !timingSafeEqual(Buffer.from(given), Buffer.from(expected)))
        throw new TwinError(401, 'Invalid RL control authentication.', 'detail');
      return work(request);
    };
  const tagsOf = (body: unknown) => {
    const tags = textsOf(fieldsOf(body), 'tags');
    const unknown = tags.find((tag) => !TAGS.includes(tag));
    if (unknown !== undefined) throw new TwinError(400, `Unknown tag: ${unknown}`);
    return tags;
  };
  const success: TwinReply = { json: { status: 'success' } };
  return {
    'POST /release_memory': signed(async ({ body }) => {
      const tags = tagsOf(body);
      if (engine.scheduler.running > 0)
        throw new TwinError(400, 'Memory cannot be released while requests are running.');
      for (const tag of tags) released.add(tag);
      if (tags.includes('kv_cache') && !faults.staleCache) await engine.flush();
      return success;
    }),
    'POST /resume_memory': signed(async ({ body }) => {
      for (const tag of tagsOf(body)) released.delete(tag);
      return success;
    }),
    /** A map of handles, or null for "that was all". Here a handle is the path of a GGUF file. */
    'POST /update_weights': signed(async ({ body }) => {
      const { weights } = fieldsOf(body);
      if (weights === null || weights === undefined) return success;
      const [path] = Object.values(fieldsOf(weights));
      if (typeof path !== 'string') throw new TwinError(400, 'weights: Input should be a valid dictionary of strings');
      try {
        await engine.load(path, { keepCache: true });
      } catch (error) {
        throw new TwinError(400, (error as Error).message);
      }
      return success;
    }),
  };
}
