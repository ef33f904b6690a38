/** What the documents say of the product and of one another is held here, as far as a program can hold it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ERROR_EDGES } from '../server/core/errors';
import { SCORER_NAMES } from '../server/core/rewards/registry';
import { parseSkill } from '../server/core/skills/parse';
import { skillSchema } from '../server/core/skills/schema';
import { environmentSchema } from '../server/env';
import { createToolRegistry } from '../server/tools/registry';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Tables may be padded so that their columns line up. */
const read = (path: string): string => readFileSync(join(root, path), 'utf8').replace(/ +\|/g, ' |');
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

describe('the documents', () => {
  it.each(Object.entries(environmentSchema.shape))(
    'have a row for the variable %s with what the schema says',
    (name, variable) => {
      const preset = variable.safeParse(undefined).data;
      const row = `| \`${name}\` | ${preset === undefined ? 'none' : `\`${preset}\``} | ${variable.description} |`;
      expect(read('docs/running.md')).toContain(row);
    },
  );

  it('name every key of a skill', () => {
    const page = read('docs/skills.md');
    for (const key of Object.keys(skillSchema.shape)) expect(page).toContain(`\`${key}\``);
  });

  it('show skills that can be saved', () => {
    const known = { tools: createToolRegistry().names(), scorers: SCORER_NAMES };
    const examples = [...read('docs/skills.md').matchAll(/```yaml\n(skill_name:[\s\S]*?)```/g)];
    expect(examples.length).toBeGreaterThan(0);
    for (const [, yaml = ''] of examples) expect(() => parseSkill(yaml, known)).not.toThrow();
  });

  it('name every scorer and every tool', () => {
    for (const scorer of SCORER_NAMES) expect(read('docs/rewards.md')).toContain(`\`${scorer}\``);
    for (const tool of createToolRegistry().names()) expect(read('docs/skills.md')).toContain(`\`${tool}\``);
  });

  it('give the exit code of every error', () => {
    const page = read('docs/command-line.md');
    for (const [code, { exit }] of Object.entries(ERROR_EDGES))
      expect(page).toMatch(new RegExp(`^\\| ${exit} \\|.*\`${code}\``, 'm'));
  });

  it.each(pages)('%s links to files that are there', (page) => {
    const links = [...read(page).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, target = '']) => target);
    for (const target of links.filter((link) => !/^[a-z]+:/.test(link)))
      expect(existsSync(join(root, dirname(page), target)), `${page}: ${target}`).toBe(true);
  });
});
