/** Whether a call may run, must wait for a person, or is refused. Closed by default. */
import type { PermissionRule, SkillPermissions } from '../skills/skill';
import { type Json, PERMISSION_LEVELS, type PermissionLevel } from '../vocabulary';
import { compareSpecificity, type ResourcePattern, resourcePattern } from './pattern';
import { type NormalResource, normaliseResource } from './resource';

export type PermissionOutcome = 'allow' | 'ask' | 'refuse';

export interface PermissionDecision {
  outcome: PermissionOutcome;
  /** The level that decided, after what its conditions made of it. */
  level: PermissionLevel;
  /** The resource pattern of the rule that decided; `default` where none matched, `expiry` where time did. */
  rule: string;
  /** A sentence without its full stop. */
  reason: string;
}

export interface ResourceUse {
  resource: string;
  action: string;
}

export interface PermissionRequest {
  permissions: SkillPermissions;
  tool: string;
  /** What the call touches besides its tool; a bare string is used with the action `execute`. */
  resources: readonly (string | ResourceUse)[];
  nowMs: number;
  /** What is known of the call, for conditions. */
  facts?: { sizeMb?: number };
}

const TOOL_ACTION = 'execute';
/** What a rule that cannot be trusted still gives. */
const MOST_OF_A_DOUBTFUL_RULE: PermissionLevel = 'ask_first';

/** Every resource is decided by its most specific rule; the strictest of these decisions is the call's. */
export function decidePermission(request: PermissionRequest): PermissionDecision {
  const { permissions, tool, resources, nowMs } = request;
  if (permissions.expiresAtMs !== undefined && nowMs >= permissions.expiresAtMs)
    return { outcome: 'refuse', level: 'manual_only', rule: 'expiry', reason: 'Agent permissions have expired' };
  const rules = permissions.rules.map((rule) => ({ rule, patterns: patternsOf(rule.resource) }));
  const uses: ResourceUse[] = [
    { resource: `tool://${tool}`, action: TOOL_ACTION },
    ...resources.map((use) => (typeof use === 'string' ? { resource: use, action: TOOL_ACTION } : use)),
  ];
  let strictest: PermissionDecision | null = null;
  for (const { resource, action } of uses)
    for (const normal of normaliseResource(resource)) {
      const decision = decideOne(normal, action, rules, request);
      if (strictest === null || stricter(decision.level, strictest.level)) strictest = decision;
    }
  return strictest ?? { outcome: 'ask', level: 'ask_first', rule: 'default', reason: 'There is nothing to decide on' };
}

interface ReadyRule {
  rule: PermissionRule;
  patterns: ResourcePattern[];
}

/** A pattern without a scheme names tools; `*` alone still means everything. */
function patternsOf(source: string): ResourcePattern[] {
  const [scheme, rest] = source.split(/:\/\/([\s\S]*)/, 2) as [string, string | undefined];
  if (rest === undefined) return [resourcePattern(source), resourcePattern(`tool://${source}`)];
  const lowerScheme = scheme.toLowerCase();
  if (!/^https?$/.test(lowerScheme)) return [resourcePattern(`${lowerScheme}://${rest}`)];
  const slash = rest.search(/[/?#]/);
  const host = (slash < 0 ? rest : rest.slice(0, slash)).toLowerCase();
  // An address always has a path; a host written without one means its root.
  const path = slash >= 0 ? rest.slice(slash) : /[*\]]$/.test(host) ? '' : '/';
  return [resourcePattern(`${lowerScheme}://${host}${path}`)];
}

function decideOne(
  resource: NormalResource,
  action: string,
  rules: readonly ReadyRule[],
  request: PermissionRequest,
): PermissionDecision {
  let best: { rule: PermissionRule; pattern: ResourcePattern; level: PermissionLevel; doubt: string | null } | null =
    null;
  for (const { rule, patterns } of rules) {
    const pattern = patterns.find((candidate) => candidate.matches(resource.text));
    if (!pattern || !(rule.actions.includes(action) || rule.actions.includes('*'))) continue;
    const doubt = conditionDoubt(rule, request.facts ?? {});
    const level = doubt === null ? rule.level : strictestOf(rule.level, MOST_OF_A_DOUBTFUL_RULE);
    const order = best === null ? -1 : compareSpecificity(pattern, best.pattern);
    if (best === null || order < 0 || (order === 0 && stricter(level, best.level)))
      best = { rule, pattern, level, doubt };
  }
  const ruled = best?.level ?? request.permissions.defaultLevel;
  const level = resource.unclear === null ? ruled : strictestOf(ruled, MOST_OF_A_DOUBTFUL_RULE);
  const source = best ? `The rule ${best.rule.resource}` : 'No rule matches, so the default level';
  const doubts = [best?.doubt, level === ruled ? null : resource.unclear].filter((doubt) => doubt != null);
  const because = doubts.length > 0 ? `, no more than ${level} because ${doubts.join(' and ')}` : '';
  return {
    outcome: outcomeOf(level),
    level,
    rule: best?.rule.resource ?? 'default',
    reason: `${source} gives ${ruled} for ${action} on ${resource.text}${because}`,
  };
}

/** Null when every condition is met. A condition that is not known, or of which nothing is known, is not met. */
function conditionDoubt(rule: PermissionRule, facts: { sizeMb?: number }): string | null {
  for (const [name, value] of Object.entries(rule.conditions)) {
    if (name !== 'max_size_mb') return `the condition ${name} is not known`;
    if (!sizeFits(value, facts.sizeMb)) return `the condition max_size_mb ${JSON.stringify(value)} is not met`;
  }
  return null;
}

function sizeFits(limit: Json, sizeMb: number | undefined): boolean {
  return typeof limit === 'number' && sizeMb !== undefined && sizeMb <= limit;
}

/** What happens at a level when nobody has granted anything yet. */
export function outcomeOf(level: PermissionLevel): PermissionOutcome {
  return level === 'full_trust' || level === 'auto_with_notification' ? 'allow' : 'ask';
}

function stricter(a: PermissionLevel, b: PermissionLevel): boolean {
  return PERMISSION_LEVELS.indexOf(a) < PERMISSION_LEVELS.indexOf(b);
}

function strictestOf(a: PermissionLevel, b: PermissionLevel): PermissionLevel {
  return stricter(a, b) ? a : b;
}
