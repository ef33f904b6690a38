/** A skill from its YAML: checked while typing, on save and at the start of a run, with line and column. */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { Invalid } from '../errors';
import { type Json, SANDBOX_LEVELS } from '../vocabulary';
import { compilePattern } from './pattern';
import { type SkillYaml, skillSchema } from './schema';
import type { Skill } from './skill';

/** Line and column count from 1. */
export interface SkillProblem {
  line: number;
  column: number;
  message: string;
}

/** What a skill may name. */
export interface KnownNames {
  tools: readonly string[];
  scorers: readonly string[];
}

const WEIGHT_TOLERANCE = 1e-6;

type Path = readonly PropertyKey[];
interface Finding {
  path: Path;
  message: string;
}

/** Throws Invalid whose message has a line a problem and whose `details.problems` are `SkillProblem[]`. */
export function parseSkill(yaml: string, known: KnownNames): Skill {
  const { problems, value } = examine(yaml, known);
  if (value === null || problems.length > 0) {
    const lines = problems.map(({ line, column, message }) => `Line ${line}, column ${column}: ${message}`);
    throw new Invalid(lines.join('\n'), { problems });
  }
  return toSkill(value);
}

/** All problems in the order of the text; none when the skill can be saved. */
export function findSkillProblems(yaml: string, known: KnownNames): SkillProblem[] {
  return examine(yaml, known).problems;
}

function examine(yaml: string, known: KnownNames): { problems: SkillProblem[]; value: SkillYaml | null } {
  const lines = new LineCounter();
  const place = (offset: number, message: string): SkillProblem => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col), message };
  };
  const document = parseDocument(yaml, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0)
    return { problems: document.errors.map((error) => place(error.pos[0], `${sentence(error.message)}`)), value: null };
  let plain: unknown;
  try {
    plain = document.toJS({ maxAliasCount: 100 });
  } catch (problem) {
    return {
      problems: [place(0, sentence(problem instanceof Error ? problem.message : String(problem)))],
      value: null,
    };
  }
  const parsed = skillSchema.safeParse(plain);
  const findings = parsed.success ? meaningOf(parsed.data, known) : parsed.error.issues.map(findingOf);
  const problems = findings
    .map((finding) => ({ offset: offsetOf(document, finding.path), finding }))
    .sort((a, b) => a.offset - b.offset)
    .map(({ offset, finding }) => place(offset, `${nameOf(finding.path)} ${finding.message}.`));
  return { problems, value: parsed.success ? parsed.data : null };
}

function findingOf(issue: { path: PropertyKey[]; message: string; code?: string; keys?: unknown }): Finding {
  const keys = issue.code === 'unrecognized_keys' && Array.isArray(issue.keys) ? issue.keys : [];
  const [key] = keys as PropertyKey[];
  return key === undefined ? issue : { path: [...issue.path, key], message: 'is not a key of this part' };
}

/** What the shape alone does not say. */
function meaningOf(skill: SkillYaml, known: KnownNames): Finding[] {
  const findings: Finding[] = [];
  const report = (path: Path, message: string): void => void findings.push({ path, message });
  const repeated = (path: Path, list: readonly string[]): void =>
    list.forEach((item, i) => {
      if (list.indexOf(item) !== i) report([...path, i], `repeats ${JSON.stringify(item)}`);
    });
  skill.available_tools.forEach((tool, i) => {
    if (!known.tools.includes(tool))
      report(
        ['available_tools', i],
        `names the tool ${JSON.stringify(tool)}, which does not exist; ${listed('tools', known.tools)}`,
      );
  });
  repeated(['available_tools'], skill.available_tools);
  repeated(['answer_format', 'required_fields'], skill.answer_format.required_fields);
  skill.audit_rules.forEach(({ pattern }, i) => {
    try {
      compilePattern(pattern);
    } catch (problem) {
      report(['audit_rules', i, 'pattern'], `cannot be used: ${reasonOf(problem)}`);
    }
  });
  const weights = Object.entries(skill.reward_weights);
  for (const [scorer] of weights)
    if (!known.scorers.includes(scorer))
      report(['reward_weights', scorer], `is not a scorer; ${listed('scorers', known.scorers)}`);
  const sum = weights.reduce((total, [, weight]) => total + weight, 0);
  if (Math.abs(sum - 1) > WEIGHT_TOLERANCE)
    report(['reward_weights'], `sum to ${Number(sum.toPrecision(7))}; they must sum to 1`);
  if ((skill.reward_weights.answer_f1 ?? 0) > 0 && skill.answer_format.required_fields.length === 0)
    report(['answer_format', 'required_fields'], 'must name a field, because answer_f1 is scored over them');
  return findings;
}

function reasonOf(problem: unknown): string {
  const message = problem instanceof Error ? problem.message : String(problem);
  return message.replace(/^The pattern .* cannot be used: /s, '').replace(/\.$/, '');
}

function listed(what: string, names: readonly string[]): string {
  return names.length === 0 ? `there are no ${what}` : `the ${what} are ${names.join(', ')}`;
}

/** `audit_rules[0].pattern` */
function nameOf(path: Path): string {
  if (path.length === 0) return 'The skill';
  return path
    .map((key, i) => (typeof key === 'number' ? `[${key}]` : i === 0 ? String(key) : `.${String(key)}`))
    .join('');
}

/** Where the value at `path` stands; where it is missing, the nearest key above it. */
function offsetOf(document: Document.Parsed, path: Path): number {
  let node: Node | null | undefined = document.contents;
  let offset = 0;
  for (const [depth, key] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair: { key: unknown; value: unknown } | undefined = node.items.find(
        (item) => isScalar(item.key) && String(item.key.value) === String(key),
      );
      if (!pair) break;
      const keyNode = pair.key as Node;
      const value = pair.value as Node | null;
      // A mapping or list begins on a later line than its key: the key is what a person looks for.
      const target = depth === path.length - 1 && value && isScalar(value) && value.value !== null ? value : keyNode;
      offset = target.range?.[0] ?? offset;
      node = value;
    } else if (isSeq(node)) {
      node = node.items[Number(key)] as Node | undefined;
      if (!node) break;
      offset = node.range?.[0] ?? offset;
    } else break;
  }
  return offset;
}

function sentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

function toSkill(yaml: SkillYaml): Skill {
  const { sampling, permissions, sandbox } = yaml;
  const expiry = permissions.expires_at;
  return {
    skillName: yaml.skill_name,
    description: yaml.description,
    availableTools: yaml.available_tools,
    maxRounds: yaml.max_rounds,
    answerFormat: { requiredFields: yaml.answer_format.required_fields },
    auditRules: yaml.audit_rules,
    rewardWeights: yaml.reward_weights,
    instructions: yaml.instructions,
    actionFormat: yaml.action_format,
    constrainActions: yaml.constrain_actions,
    sampling: {
      temperature: sampling.temperature,
      topP: sampling.top_p,
      topK: sampling.top_k,
      minP: sampling.min_p,
      maxTokensPerTurn: sampling.max_tokens_per_turn,
    },
    stop: yaml.stop ?? null,
    sandbox: { level: sandbox.level, accept: acceptedLevels(sandbox.level, sandbox.accept) },
    permissions: {
      defaultLevel: permissions.default_level,
      rules: permissions.rules,
      ...(expiry === undefined ? {} : { expiresAtMs: Date.parse(expiry) }),
    },
    maxObservationTokens: yaml.max_observation_tokens,
    deadlineMs: yaml.deadline_ms,
    extra: Object.fromEntries(Object.entries(yaml).filter(([key]) => !Object.hasOwn(skillSchema.shape, key))) as Record<
      string,
      Json
    >,
  };
}

/** Without a list: the wanted level and every stronger one. Nothing weaker unless it is named. */
function acceptedLevels(
  level: Skill['sandbox']['level'],
  accept: readonly Skill['sandbox']['level'][] | undefined,
): Skill['sandbox']['accept'] {
  if (accept === undefined) return SANDBOX_LEVELS.slice(SANDBOX_LEVELS.indexOf(level));
  return accept.includes(level) ? [...accept] : [level, ...accept];
}
