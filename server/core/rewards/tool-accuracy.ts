/** Did the calls work: parsed, fitting the schema, permitted, successful, and of the skill's tools. */
import type { StepScorer } from './scorer';

/** Mean over the calls of a step. A result is a success only after its arguments were validated and permitted. */
export const toolAccuracy: StepScorer = {
  name: 'tool_accuracy',
  scores: 'step',
  lacks: () => null,
  score({ skill, calls, results }) {
    const good = calls.filter((call) => {
      const result = results.find((candidate) => candidate.callIndex === call.index);
      const readable = call.error === null && call.arguments !== null;
      return readable && skill.availableTools.includes(call.tool) && result?.status === 'success';
    });
    return good.length / calls.length;
  },
};
