/** The check and the conformance suite against a server that is running already: `node scripts/gpu-check.mjs URL`. */
import { beforeAll, describe, expect, it } from 'vitest';
import { checkLines } from '../../commands/check-list';
import { systemAmbient } from '../../core/ambient';
import { type BackendCheck, REMOTE_KINDS } from '../../core/inference';
import { silentLogger } from '../../observability/logger';
import { describeBackend } from '../testing/conformance';
import { checkServer } from './check';
import { PROTOCOLS } from './protocols';
import { RemoteBackend } from './remote-backend';

const url = process.env.STUDIO_TEST_SERVER_URL ?? '';
const fromEnvironment = (name: string) => process.env[`STUDIO_TEST_SERVER_${name}`] || null;
const declared = REMOTE_KINDS.find((kind) => kind === fromEnvironment('KIND')) ?? null;
const key = fromEnvironment('KEY');
const model = fromEnvironment('MODEL');
const tokenizerFolder = fromEnvironment('TOKENIZER');
/** Weights in 16 bits, batches of other sizes, kernels that add up in another order. */
const GPU_TOLERANCE = 0.05;
/** Limit against hanging. */
const HANG_MS = 300_000;

describe.skipIf(url === '')(`the server at ${url}`, () => {
  let check: BackendCheck;
  const shared = { url, key, model, tokenizerFolder, logger: silentLogger, ambient: systemAmbient() };

  beforeAll(async () => {
    check = await checkServer({
      ...shared,
      kind: declared,
      contextLength: null,
      backendName: 'given',
      protocols: PROTOCOLS,
    });
    console.log(checkLines(check).join('\n'));
  }, HANG_MS);

  it('fails in no item of the check', () => {
    expect(check.items.filter(({ status }) => status === 'fail')).toEqual([]);
  });

  const open = async () => {
    const { kind, capabilities } = check;
    if (!kind || !capabilities) throw new Error(`The server at ${url} cannot be used; see the items of the check.`);
    const { maxInFlight } = capabilities;
    return RemoteBackend.open({ ...shared, name: 'given', protocol: PROTOCOLS[kind], capabilities, maxInFlight });
  };
  describeBackend('conformance', open, {
    logprobTolerance: GPU_TOLERANCE,
    timeoutMs: HANG_MS,
    lacks: 'whatever it says',
  });
});
