/** Puts the skills, datasets and the model that come with the product into the database. Safe at every start. */
import { access, readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { listBackends } from '../../../db/queries/catalog';
import { skillTextIsKnown } from '../../../db/queries/skill-texts';
import { isStudioError } from '../../core/errors';
import { parseSkill } from '../../core/skills/parse';
import { addBackend } from '../backends/add-backend';
import { requireRole, type ServiceContext } from '../context';
import { importDataset } from '../datasets/import-dataset';
import { KNOWN_NAMES } from '../skills/known-names';
import { saveSkill } from '../skills/save-skill';
import { hashSkillText } from '../skills/skill-text';

export const TUTORIAL_BACKEND = 'tutorial';
/** Relative to the folder of package.json. */
export const TUTORIAL_MODEL = 'samples/models/tutorial.gguf';

/**
 * A skill's text becomes a version when it never was one; a dataset is added when its name is new. A sample that cannot
 * be loaded is logged and left out: what people have of their own must stay reachable.
 */
export async function loadSamples({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: { packageRoot: string };
}): Promise<void> {
  requireRole(ctx, 'admin', 'Loading the samples');
  const { packageRoot } = input;
  const folder = (name: string) => join(packageRoot, 'samples', name);
  for (const file of await filesIn(folder('skills'), '.yaml')) await orLog(ctx, file, () => loadSkill(ctx, file));
  for (const file of await filesIn(folder('datasets'), '.jsonl')) await orLog(ctx, file, () => loadDataset(ctx, file));
  await orLog(ctx, TUTORIAL_MODEL, () => loadBackend(ctx, packageRoot));
}

async function loadSkill(ctx: ServiceContext, file: string): Promise<void> {
  const yaml = await readFile(file, 'utf8');
  const name = parseSkill(yaml, KNOWN_NAMES).skillName;
  if (await skillTextIsKnown(ctx.database.db, { name, yamlHash: hashSkillText(yaml) })) return;
  await saveSkill({ ctx, input: { yaml } });
}

async function loadDataset(ctx: ServiceContext, file: string): Promise<void> {
  await importDataset({ ctx, input: { name: basename(file, '.jsonl'), jsonl: await readFile(file, 'utf8') } });
}

async function loadBackend(ctx: ServiceContext, packageRoot: string): Promise<void> {
  try {
    await access(join(packageRoot, TUTORIAL_MODEL));
  } catch {
    ctx.logger.warn(
      `The tutorial's model ${TUTORIAL_MODEL} is not here: its backend is left out. Install the product again to get it.`,
    );
    return;
  }
  const known = await listBackends(ctx.database.db);
  // What a person made of it since is theirs.
  if (known.some((row) => row.name === TUTORIAL_BACKEND)) return;
  const isDefault = !known.some((row) => row.isDefault);
  const settings = { modelPath: TUTORIAL_MODEL };
  await addBackend({ ctx, input: { name: TUTORIAL_BACKEND, kind: 'embedded', settings, isDefault } });
}

/** In alphabetical order; none when the folder is not there. */
async function filesIn(folder: string, extension: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names
    .filter((name) => name.endsWith(extension))
    .sort()
    .map((name) => join(folder, name));
}

async function orLog(ctx: ServiceContext, what: string, load: () => Promise<void>): Promise<void> {
  try {
    await load();
  } catch (error) {
    const name = basename(what);
    if (isStudioError(error)) ctx.logger.warn({ sample: name }, `The sample ${name} was left out: ${error.message}`);
    else ctx.logger.warn({ err: error, sample: name }, `The sample ${name} was left out`);
  }
}
