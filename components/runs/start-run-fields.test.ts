import { describe, expect, it } from 'vitest';
import { readStartRun, type StartRunFields } from './start-run-fields';

const fields: StartRunFields = {
  skill: 's',
  dataset: 'd',
  backend: '',
  groupSize: '8',
  tasks: '',
  seed: '',
  temperature: '',
  name: ' ',
  judge: '',
  noSignal: 'keep',
  maxStaleness: '',
  stale: 'redo',
};

describe('the start form', () => {
  it('leaves out what was left empty', () => {
    expect(readStartRun(fields).input).toEqual({ skill: 's', dataset: 'd', groupSize: 8 });
    expect(
      readStartRun({
        ...fields,
        backend: 'b',
        tasks: '16',
        seed: '0',
        temperature: '0.5',
        name: ' n ',
        judge: 'j',
        noSignal: 'drop',
      }).input,
    ).toEqual({
      skill: 's',
      dataset: 'd',
      backend: 'b',
      groupSize: 8,
      tasks: 16,
      seed: 0,
      temperature: 0.5,
      name: 'n',
      judge: 'j',
      dropNoSignal: true,
    });
  });
  it('names every number that is out of bounds', () => {
    expect(readStartRun({ ...fields, groupSize: '', tasks: '1.5', seed: '-1', temperature: 'hot' }).wrong).toEqual({
      groupSize: { min: 1, max: 1024 },
      tasks: { min: 1, max: 100_000 },
      seed: { min: 0, max: 2_147_483_647 },
      temperature: { min: 0, max: 5 },
    });
  });

  it('sends a staleness limit with what becomes of older trajectories, and neither without a limit', () => {
    expect(readStartRun({ ...fields, maxStaleness: '0', stale: 'drop' }).input).toMatchObject({
      maxStaleness: 0,
      stale: 'drop',
    });
    expect(readStartRun({ ...fields, stale: 'drop' }).input).not.toHaveProperty('stale');
    expect(readStartRun({ ...fields, maxStaleness: '1.5' }).wrong).toHaveProperty('maxStaleness');
  });
});
