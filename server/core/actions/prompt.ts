/** What the model is told first: the skill's instructions, the tools, and the form its turns must have. */
import type { ChatMessage } from '../events';
import type { Skill, Task } from '../skills/skill';
import type { JsonObject } from '../vocabulary';
import { FINAL_ANSWER } from './final-answer';

export interface PromptTool {
  name: string;
  description: string;
  parameters: JsonObject;
}

/** System message and task; as one message where the template does not keep a system message. */
export function taskMessages(instructions: string, task: Task, systemMessage: boolean): ChatMessage[] {
  if (!systemMessage) return [{ role: 'user', content: `${instructions}\n\n${task.prompt}` }];
  return [
    { role: 'system', content: instructions },
    { role: 'user', content: task.prompt },
  ];
}

/** The tools are told by the template. Instructions with a placeholder in them are told as written. */
export function callInstructions(skill: Skill, tools: readonly PromptTool[]): string {
  const filled = withPlaceholders(skill.instructions, tools);
  if (filled !== null) return filled;
  return `${skill.instructions.trim()}\n\nCall the function ${FINAL_ANSWER} when you know the answer.`.trim();
}

/** Instructions with a placeholder in them are the whole system message, as written. */
export function reactInstructions(skill: Skill, tools: readonly PromptTool[]): string {
  const filled = withPlaceholders(skill.instructions, tools);
  if (filled !== null) return filled;
  const answer = JSON.stringify(Object.fromEntries(skill.answerFormat.requiredFields.map((field) => [field, '…'])));
  return `${skill.instructions.trim()}

Tools:
${listOf(tools)}

Write in this form, one step at a time:
Thought: what to do next
Action: {"tool": "NAME", "args": {…}}
Observation: the tool's result is put here for you

When you know the answer:
Thought: why
Answer: ${answer}`;
}

/** Null when there is no placeholder. */
function withPlaceholders(instructions: string, tools: readonly PromptTool[]): string | null {
  if (!/\{\{(tools|tool_names)\}\}/.test(instructions)) return null;
  const names = tools.map((tool) => tool.name).join(', ');
  return instructions
    .trim()
    .replace(/\{\{(tools|tool_names)\}\}/g, (_, which) => (which === 'tools' ? listOf(tools) : names));
}

function listOf(tools: readonly PromptTool[]): string {
  return tools.map((t) => `- ${t.name}: ${t.description} args: ${JSON.stringify(t.parameters)}`).join('\n');
}
