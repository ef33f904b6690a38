/** The start form as text fields, and what of it is sent. Kept apart from the form so that it can be tested. */
export interface StartRunFields {
  skill: string;
  dataset: string;
  backend: string;
  groupSize: string;
  tasks: string;
  seed: string;
  temperature: string;
  name: string;
  /** Backend that judges; '' for none. */
  judge: string;
  /** 'keep' or 'drop'. */
  noSignal: string;
  /** Weight versions a trajectory may be behind; '' for no limit. */
  maxStaleness: string;
  /** 'redo' or 'drop'. */
  stale: string;
}

export type NumberField = 'groupSize' | 'tasks' | 'seed' | 'temperature' | 'maxStaleness';

const BOUNDS: Record<NumberField, { min: number; max: number; whole: boolean }> = {
  groupSize: { min: 1, max: 1024, whole: true },
  tasks: { min: 1, max: 100_000, whole: true },
  seed: { min: 0, max: 2_147_483_647, whole: true },
  temperature: { min: 0, max: 5, whole: false },
  maxStaleness: { min: 0, max: 1000, whole: true },
};

export interface StartRunInput {
  skill: string;
  dataset: string;
  backend?: string;
  groupSize: number;
  tasks?: number;
  seed?: number;
  temperature?: number;
  name?: string;
  judge?: string;
  dropNoSignal?: boolean;
  maxStaleness?: number;
  stale?: 'redo' | 'drop';
}

/** Numbers out of bounds come back by field, with the bounds for the message; an empty optional field is left out. */
export function readStartRun(
  fields: StartRunFields,
):
  | { input: StartRunInput; wrong: null }
  | { input: null; wrong: Partial<Record<NumberField, { min: number; max: number }>> } {
  const wrong: Partial<Record<NumberField, { min: number; max: number }>> = {};
  const number = (field: NumberField): number | undefined => {
    const text = fields[field].trim();
    if (text === '' && field !== 'groupSize') return undefined;
    const value = text === '' ? Number.NaN : Number(text);
    const { min, max, whole } = BOUNDS[field];
    if (value >= min && value <= max && (!whole || Number.isInteger(value))) return value;
    wrong[field] = { min, max };
    return undefined;
  };
  const [groupSize, tasks, seed, temperature, maxStaleness] = [
    number('groupSize'),
    number('tasks'),
    number('seed'),
    number('temperature'),
    number('maxStaleness'),
  ];
  if (Object.keys(wrong).length > 0 || groupSize === undefined) return { input: null, wrong };
  return {
    wrong: null,
    input: {
      skill: fields.skill,
      dataset: fields.dataset,
      groupSize,
      ...(fields.backend === '' ? {} : { backend: fields.backend }),
      ...(tasks === undefined ? {} : { tasks }),
      ...(seed === undefined ? {} : { seed }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(fields.name.trim() === '' ? {} : { name: fields.name.trim() }),
      ...(fields.judge === '' ? {} : { judge: fields.judge }),
      ...(fields.noSignal === 'drop' ? { dropNoSignal: true } : {}),
      ...(maxStaleness === undefined
        ? {}
        : { maxStaleness, stale: fields.stale === 'drop' ? ('drop' as const) : ('redo' as const) }),
    },
  };
}

/** How many tasks a first run takes unless told otherwise: enough to see groups, few enough to be done soon. */
export const USUAL_TASKS = 16;
export const USUAL_GROUP_SIZE = 8;
