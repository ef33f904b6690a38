/**
 * Plays the game as a player of mixed skill would, for the policy to imitate. The thought states what is known, so that
 * what a turn does can be read from it. The player is weak on purpose: reinforcement learning shall have something
 * to improve, and every kind of mistake shall turn up now and then.
 */
import { parseReact, STOP_OBSERVATION } from '../../server/core/actions/react';
import { answerCall, between, drawTask, probe, type SearchTask } from './search-task';

export interface Turn {
  /** What the policy writes, its stop string included. */
  text: string;
  /** What the environment answers; null where the policy ended its turn itself, with an answer. */
  observation: string | null;
}

export interface Demonstration {
  task: SearchTask;
  turns: Turn[];
  /** Ended with the right answer. */
  solved: boolean;
}

/** How often the player does what in a turn; the shares add up to 1. */
export const HABITS = {
  /** Asks for the middle of what is left. */
  bisect: 0.26,
  /** Asks for any number that is left. */
  wander: 0.32,
  /** Has forgotten every hint and starts over from the task's bounds. */
  forget: 0.325,
  /** Answers with a guess. */
  guess: 0.08,
  /** Writes a call that the harness refuses. */
  blunder: 0.015,
};
export type Habit = keyof typeof HABITS;

export function demonstrate(random: () => number, maxRounds: number): Demonstration {
  const task = drawTask(random);
  const turns: Turn[] = [];
  let low = task.low;
  let high = task.high;
  for (let round = 1; round <= maxRounds; round++) {
    if (turns.at(-1)?.observation === 'found') {
      const found = low;
      return { task, turns: [...turns, answerTurn(`found ${found}.`, found)], solved: true };
    }
    const habit = drawHabit(random);
    if (habit === 'guess') {
      const n = between(random, low, high);
      return {
        task,
        turns: [...turns, answerTurn(`between ${low} and ${high}, I say ${n}.`, n)],
        solved: n === task.secret,
      };
    }
    if (habit === 'forget') {
      low = task.low;
      high = task.high;
    }
    const n = habit === 'bisect' ? Math.floor((low + high) / 2) : between(random, low, high);
    const thought =
      habit === 'forget' ? `start over between ${low} and ${high}, try ${n}.` : `between ${low} and ${high}, try ${n}.`;
    if (habit === 'blunder') {
      turns.push(blunderTurn(thought, n, random));
      continue;
    }
    const observation = probe(task.secret, n);
    turns.push({ text: turnText(thought, JSON.stringify({ tool: 'probe', args: { n } })), observation });
    if (observation === 'found') low = high = n;
    else if (observation === 'higher') low = Math.min(n + 1, high);
    else high = Math.max(n - 1, low);
  }
  return { task, turns, solved: false };
}

const turnText = (thought: string, action: string) => `Thought: ${thought}\nAction: ${action}\n${STOP_OBSERVATION}`;

function answerTurn(thought: string, number: number): Turn {
  return { text: `Thought: ${thought}\nAnswer: {"number": ${number}}`, observation: null };
}

/** A call without its last brace, with a tool that does not exist, or with a text for a number. */
function blunderTurn(thought: string, n: number, random: () => number): Turn {
  const actions = [
    `{"tool":"probe","args":{"n":${n}}`,
    JSON.stringify({ tool: 'ask', args: { n } }),
    JSON.stringify({ tool: 'probe', args: { n: `${n}` } }),
  ];
  const text = turnText(thought, actions[between(random, 0, actions.length - 1)] as string);
  const sampled = new TextEncoder().encode(text.slice(0, -STOP_OBSERVATION.length));
  const [call] = parseReact(sampled, 'stop').calls;
  if (!call) throw new Error(`The blunder ${JSON.stringify(text)} holds no call.`);
  return { text, observation: answerCall(n, call).observation };
}

function drawHabit(random: () => number): Habit {
  let rest = random();
  for (const [habit, share] of Object.entries(HABITS) as [Habit, number][]) {
    rest -= share;
    if (rest < 0) return habit;
  }
  return 'bisect';
}
