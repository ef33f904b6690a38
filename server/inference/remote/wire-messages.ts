/** Messages as servers with OpenAI's routes want them: the arguments of a call are a string of JSON there. */
import type { ChatMessage } from '../../core/events';

export function wireMessages(messages: readonly ChatMessage[]): Record<string, unknown>[] {
  return messages.map(({ tool_calls, thinking, ...message }) => ({
    ...message,
    // Two spellings of one field: `thinking` in templates of gpt-oss, `reasoning_content` in those that came before.
    ...(thinking !== undefined && { thinking, reasoning_content: thinking }),
    ...(tool_calls && {
      tool_calls: tool_calls.map(({ function: { name, arguments: given }, ...call }) => ({
        ...call,
        function: { name, arguments: JSON.stringify(given) },
      })),
    }),
  }));
}
