/** The tutorial's skill, read from the file that the product serves and checked as the product checks it. */
import { readFile } from 'node:fs/promises';
import { parseSkill } from '../../server/core/skills/parse';
import type { Skill } from '../../server/core/skills/skill';
import { KNOWN_NAMES } from '../../server/services/skills/known-names';

/** Throws Invalid with line and column when the file is no skill. */
export async function readSkill(file: URL | string): Promise<Skill> {
  return parseSkill(await readFile(file, 'utf8'), KNOWN_NAMES);
}
