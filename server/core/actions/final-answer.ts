/** The function whose call is the final answer in the tool-call formats. */
import type { Skill } from '../skills/skill';
import type { PromptTool } from './prompt';

export const FINAL_ANSWER = 'final_answer';

export function finalAnswerTool(skill: Skill): PromptTool {
  const fields = skill.answerFormat.requiredFields;
  return {
    name: FINAL_ANSWER,
    description: 'Gives the final answer and ends the task.',
    parameters: {
      type: 'object',
      properties: Object.fromEntries(fields.map((field) => [field, { type: ['string', 'number', 'boolean'] }])),
      required: fields,
      additionalProperties: false,
    },
  };
}
