/** ReAct as one of the forms: told in the prompt's text, its results written into the turn behind `Observation:`. */
import type { ActionFormat, TurnEnd } from './format';
import { turnGrammar } from './grammar';
import { reactInstructions, taskMessages } from './prompt';
import { parseReact, STOP_OBSERVATION } from './react';
import type { Cut } from './read-object';
import { shortestValue } from './shortest';

export const react: ActionFormat = {
  name: 'react',
  endTokens: [],
  callEnd: /^/,
  stopStrings: (skill) => skill.stop ?? [STOP_OBSERVATION],
  offered: () => [],
  openingMessages: (skill, tools, task, systemMessage) =>
    taskMessages(reactInstructions(skill, tools), task, systemMessage),
  parse: (bytes, end) => parseReact(bytes, cutOf(end)),
  constraints: (skill, tools) => ({ grammar: turnGrammar(skill, tools), jsonSchema: null }),
  shortestTurns: (skill, tools) => [
    ...tools.map(
      ({ name, parameters }) =>
        `Action: {"tool":${JSON.stringify(name)},"args":${JSON.stringify(shortestValue(parameters))}}`,
    ),
    `Answer: ${JSON.stringify(Object.fromEntries(skill.answerFormat.requiredFields.map((field) => [field, 0])))}`,
  ],
  inTurn: (stopString, observation) => (stopString === null ? null : ` ${observation}\n`),
  reply: ({ text, observation }) => {
    const messages = [
      { role: 'assistant' as const, content: text },
      { role: 'user' as const, content: `Observation: ${observation}` },
    ];
    return { messages, closing: messages };
  },
};

const cutOf = ({ finishReason, stopString }: TurnEnd): Cut =>
  finishReason === 'length' ? 'length' : stopString !== null ? 'stop' : null;
