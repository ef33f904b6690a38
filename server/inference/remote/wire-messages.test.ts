import { expect, it } from 'vitest';
import { wireMessages } from './wire-messages';

it('writes the arguments of calls as text, and leaves plain messages as they are', () => {
  const plain = { role: 'user' as const, content: 'hi' };
  const call = { id: 'c00000001', type: 'function' as const, function: { name: 'look_up', arguments: { n: 1 } } };
  expect(wireMessages([plain, { role: 'assistant', content: '', thinking: 'hm', tool_calls: [call] }])).toEqual([
    plain,
    {
      role: 'assistant',
      content: '',
      thinking: 'hm',
      reasoning_content: 'hm',
      tool_calls: [{ ...call, function: { name: 'look_up', arguments: '{"n":1}' } }],
    },
  ]);
});
