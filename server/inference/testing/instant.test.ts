import { describe, expect, it } from 'vitest';
import { describeBackend, PLAIN } from './conformance';
import { InstantBackend, TURN_END } from './instant';

const script = () => 'Thought: I look.\nAction: {"tool":"probe","args":{"n":8}}\nObservation: never written';

describeBackend('instant backend', async () => new InstantBackend({ script, contextLength: 2048 }), {
  samples: false,
  lacks: ['decode', 'json_schema', 'regex', 'grammar', 'choice'],
});

describe('the instant backend', () => {
  it('says its script up to the stop string, from the prompt it is given', async () => {
    const backend = new InstantBackend({ script: (prompt) => `${prompt.length} bytes` });
    const { ids } = await backend.tokenize('ab🌊', { special: false });
    const [whole] = await backend.generate([{ promptIds: ids, options: PLAIN, affinityKey: 'k' }]);
    expect(whole).toMatchObject({ status: 'fulfilled', value: { finishReason: 'eos' } });
    if (whole?.status !== 'fulfilled') return;
    expect(new TextDecoder().decode(whole.value.bytes)).toBe('6 bytes<|im_end|>');
    expect(whole.value.ids.at(-1)).toBe(TURN_END);
    const [stopped] = await backend.generate([
      { promptIds: ids, options: { ...PLAIN, stop: ['by'] }, affinityKey: 'k' },
    ]);
    expect(stopped).toMatchObject({ status: 'fulfilled', value: { finishReason: 'stop', stopString: 'by' } });
  });

  it('gives the scripted tokens probability one and all others none', async () => {
    const backend = new InstantBackend({ script: () => 'yes' });
    const { ids } = await backend.tokenize('yeah', { special: false });
    const [scores] = await backend.getLogprobs([{ promptIds: Int32Array.of(1), completionIds: ids }]);
    expect(scores?.logprobs).toEqual(Float32Array.of(0, 0, -103, -103));
  });
});
