/** RemoteBackend against servers that speak SGLang's and trtllm-serve's protocols on a real tiny model. */
import { afterAll, beforeAll, describe } from 'vitest';
import { describeBackend } from '../testing/conformance';
import { startSglangTwin } from '../testing/twin/sglang';
import { startTensorrtTwin } from '../testing/twin/tensorrt';
import type { Twin } from '../testing/twin/twin';
import { TwinFixture } from '../testing/twin/twin-fixture';
import { sglang } from './sglang';
import { tensorrtLlm } from './tensorrt-llm';

const fixture = new TwinFixture();
beforeAll(() => fixture.open());
afterAll(() => fixture.close());

describe('on SGLang', () => {
  let twin: Twin;
  afterAll(() => twin?.close());
  describeBackend(
    'the SGLang protocol',
    async () => {
      twin = await startSglangTwin({ modelPath: fixture.tiny });
      return fixture.backendOn(twin, { protocol: sglang, capabilities: { seeded: true } });
    },
    {
      teacher: () => fixture.teacher(fixture.tiny),
      weights: {
        get next() {
          return { kind: 'checkpoint' as const, path: fixture.next };
        },
        get broken() {
          return { kind: 'checkpoint' as const, path: fixture.missing };
        },
      },
    },
  );
});

describe('on trtllm-serve', () => {
  let twin: Twin;
  afterAll(() => twin?.close());
  describeBackend(
    'the trtllm-serve protocol',
    async () => {
      twin = await startTensorrtTwin({ modelPath: fixture.tiny });
      return fixture.backendOn(twin, {
        protocol: tensorrtLlm,
        tokenizerFolder: fixture.tokenizer,
        capabilities: { seeded: true },
      });
    },
    { teacher: () => fixture.teacher(fixture.tiny), lacks: ['scoring'] },
  );
});
