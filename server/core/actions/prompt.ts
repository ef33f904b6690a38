/** What the model is told first: the skill's instructions, the tools, and the form its turns must have. */
import type { ChatMessage } from '../events';
import type { Skill, Task } from '../skills/skill';
import type { JsonObject } from '../vocabulary';

export interface PromptTool {
  name: string;
  description: string;
  parameters: JsonObject;
}

/** System message and task. Instructions with a placeholder in them are the whole system message, as written. */
export function openingMessages(skill: Skill, tools: PromptTool[], task: Task): ChatMessage[] {
  return [
    { role: 'system', content: systemMessage(skill, tools) },
    { role: 'user', content: task.prompt },
  ];
}

function systemMessage(skill: Skill, tools: PromptTool[]): string {
  const list = tools.map((t) => `- ${t.name}: ${t.description} args: ${JSON.stringify(t.parameters)}`).join('\n');
  const names = tools.map((t) => t.name).join(', ');
  const { instructions } = skill;
  if (/\{\{(tools|tool_names)\}\}/.test(instructions))
    return instructions.trim().replace(/\{\{(tools|tool_names)\}\}/g, (_, which) => (which === 'tools' ? list : names));
  const answer = JSON.stringify(Object.fromEntries(skill.answerFormat.requiredFields.map((field) => [field, '…'])));
  return `${instructions.trim()}

Tools:
${list}

Write in this form, one step at a time:
Thought: what to do next
Action: {"tool": "NAME", "args": {…}}
Observation: the tool's result is put here for you

When you know the answer:
Thought: why
Answer: ${answer}`;
}
