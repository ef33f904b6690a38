import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Invalid } from '../../core/errors';
import { parseDataset } from './parse-dataset';

describe('the lines of a dataset', () => {
  it('reads tasks with and without the optional keys, empty lines, CRLF and a byte order mark', () => {
    const text =
      '\ufeff{"task_id":"a","prompt":"p"}\r\n\r\n{"task_id":7,"prompt":"q","answer":{"x":1},"metadata":{"y":2},"skill":"s","more":1}';
    expect(parseDataset(text)).toEqual([
      { taskId: 'a', prompt: 'p', answer: null, metadata: {}, skill: null },
      { taskId: '7', prompt: 'q', answer: { x: 1 }, metadata: { y: 2 }, skill: 's' },
    ]);
  });

  it('names the line that is wrong, and why', () => {
    const good = '{"task_id":"a","prompt":"p"}\n';
    expect(() => parseDataset(`${good}{`)).toThrow(/^Line 2 is not JSON/);
    expect(() => parseDataset(`${good}\n[1]`)).toThrow('Line 3 is no JSON object.');
    expect(() => parseDataset(`${good}{"task_id":"b"}`)).toThrow(/^Line 2: The field prompt/);
    expect(() => parseDataset(`${good}{"task_id":"b","prompt":"p","metadata":[]}`)).toThrow(
      /metadata.*must be an object/,
    );
    expect(() => parseDataset(`${good}${good}`)).toThrow('Line 2 has the task_id of line 1: "a"');
    expect(() => parseDataset(`${good}{"task_id":"b","prompt":"\\u0000"}`)).toThrow(/Line 2.*U\+0000/);
    expect(() => parseDataset(`${good}{"task_id":"b","prompt":"\\ud800"}`)).toThrow(/Line 2.*surrogate/);
    const deep = `{"task_id":"b","prompt":"p","answer":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
    expect(() => parseDataset(`${good}${deep}`)).toThrow('Line 2 nests lists or objects more than 100 deep.');
    expect(() => parseDataset('\n \n')).toThrow('The dataset has no task.');
  });

  it('keeps pairs of surrogates', () => {
    expect(parseDataset('{"task_id":"a","prompt":"\\ud83d\\ude00"}')[0]?.prompt).toBe('😀');
  });

  it('ends in tasks or in one sentence, whatever it is given', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        try {
          expect(parseDataset(text).length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(Invalid);
        }
      }),
    );
  });
});
