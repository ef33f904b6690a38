import { describe, expect, it } from 'vitest';
import { parseReact, STOP_OBSERVATION } from '../../server/core/actions/react';
import { seededRandom } from '../../server/core/ambient';
import { readTasks } from './dataset-file';
import { demonstrate, HABITS } from './demonstrations';
import { progressOf } from './play';
import { answerCall, drawTask, LARGEST_LOW, LARGEST_SPAN, SMALLEST_LOW, SMALLEST_SPAN } from './search-task';
import { readSkill } from './skill-file';

const samples = new URL('../../samples/', import.meta.url);
const MAX_ROUNDS = 6;

function many(count: number, seed = 1) {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => demonstrate(random, MAX_ROUNDS));
}

const parseTurn = (text: string) => {
  const stopped = text.endsWith(STOP_OBSERVATION);
  const own = stopped ? text.slice(0, -STOP_OBSERVATION.length) : text;
  return parseReact(new TextEncoder().encode(own), stopped ? 'stop' : null);
};

describe('demonstrations', () => {
  it('are the same for the same seed', () => {
    expect(many(20)).toEqual(many(20));
    expect(many(20)).not.toEqual(many(20, 2));
  });

  it('follow the rules of the game as the harness plays it', () => {
    for (const { task, turns, solved } of many(500)) {
      expect(turns.length).toBeLessThanOrEqual(MAX_ROUNDS);
      turns.forEach(({ text, observation }, i) => {
        const parsed = parseTurn(text);
        expect(parsed.thought).not.toBe('');
        if (observation === null) {
          expect(i).toBe(turns.length - 1);
          expect(solved).toBe(parsed.answer?.number === task.secret);
        } else {
          const [call] = parsed.calls;
          expect(parsed.calls).toHaveLength(1);
          if (call) {
            // Of a blunder only the kind of answer is fixed: the hidden number plays no part in it.
            expect(observation).toBe(answerCall(task.secret, call).observation);
          }
        }
      });
      expect(turns.at(-1)?.observation === null || !solved).toBe(true);
    }
  });

  it('are partly competent and show every kind of mistake', () => {
    const demonstrations = many(3000);
    const share = demonstrations.filter(({ solved }) => solved).length / demonstrations.length;
    expect(share).toBeGreaterThan(0.4);
    expect(share).toBeLessThan(0.7);
    const observations = demonstrations.flatMap(({ turns }) => turns.map(({ observation }) => observation ?? 'answer'));
    const errors = observations.filter((text) => text.startsWith('error: '));
    expect(errors.length / observations.length).toBeGreaterThan(0.005);
    expect(errors.length / observations.length).toBeLessThan(0.03);
    expect(new Set(errors.map((text) => text.slice(0, 20))).size).toBe(3);
  });

  it('divide their habits without remainder', () => {
    expect(Object.values(HABITS).reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 12);
  });
});

describe('the tutorial dataset', () => {
  it('holds 32 different tasks of the kind the policy learns', async () => {
    const tasks = await readTasks(new URL('datasets/tutorial.jsonl', samples));
    expect(tasks).toHaveLength(32);
    expect(new Set(tasks.map(({ prompt, secret }) => `${prompt} ${secret}`)).size).toBe(32);
    const random = seededRandom(3);
    const learnt = new Set(Array.from({ length: 20_000 }, () => drawTask(random).prompt));
    for (const { prompt, secret, low, high } of tasks) {
      expect(learnt).toContain(prompt);
      expect(secret >= low && secret <= high).toBe(true);
      expect(low >= SMALLEST_LOW && low <= LARGEST_LOW).toBe(true);
      expect(high - low + 1 >= SMALLEST_SPAN && high - low + 1 <= LARGEST_SPAN).toBe(true);
    }
  });
});

describe('the sample skills', () => {
  it.each(['tutorial', 'python-arithmetic'])('%s is a valid skill', async (name) => {
    const skill = await readSkill(new URL(`skills/${name}.yaml`, samples));
    expect(skill.skillName).toBe(name);
  });

  it('let the demonstrated number of rounds be played', async () => {
    expect((await readSkill(new URL('skills/tutorial.yaml', samples))).maxRounds).toBe(MAX_ROUNDS);
  });
});

describe('search progress', () => {
  it('is what the probe ruled out of what was possible', () => {
    expect(progressOf({ low: 1, high: 15 }, 8, 12)).toBeCloseTo(1 - 7 / 15, 12);
    expect(progressOf({ low: 1, high: 15 }, 1, 12)).toBeCloseTo(1 / 15, 12);
  });
  it('is 1 for the number itself and 0 outside what was possible', () => {
    expect(progressOf({ low: 9, high: 15 }, 12, 12)).toBe(1);
    expect(progressOf({ low: 9, high: 15 }, 3, 12)).toBe(0);
  });
});
