/**
 * What trajectories are made from, kept while it is in use: open backends with their engines, the parsed skill of each
 * run, and for each claim the environment it acts in.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../db/connection';
import { type BackendRow, getBackend } from '../../db/queries/catalog';
import { getRunSettings } from '../../db/queries/runs';
import type { ClaimedTrajectory } from '../../db/queries/trajectories';
import { succeededVersions } from '../../db/queries/weight-updates';
import { isTransient } from '../core/errors';
import { SCORER_NAMES } from '../core/rewards/registry';
import { parseSkill } from '../core/skills/parse';
import type { Skill } from '../core/skills/skill';
import { chooseFormat } from '../harness/choose-format';
import { Session, type SessionStore } from '../harness/session';
import { turnConstraint } from '../harness/turn-limits';
import type { InferenceBackend } from '../inference/backend';
import type { Metrics } from '../observability/metrics';
import type { SandboxPool } from '../sandbox/sandbox';
import type { ToolRegistry } from '../tools/registry';
import { AsyncRolloutEngine } from './engine';
import { createJudge, type Judge } from './judge';
import { type OpenBackendOptions, openBackend } from './open-backend';
import { outdatedRule } from './outdated';
import { applyRunOptions, readRunOptions, type Staleness } from './run-options';
import { ToolEnv } from './tool-env';
import { VersionLine } from './version-line';
import type { RunMaterial } from './worker';

export interface MaterialOptions extends OpenBackendOptions {
  database: Database;
  store: SessionStore;
  tools: ToolRegistry;
  sandboxes: () => Promise<SandboxPool>;
  toolWorkers: number;
  metrics: Metrics;
}

/** Milliseconds a tool call may take, its wait for a sandbox included. */
const CALL_LIMIT_MS = 90_000;
/** How often a backend that is to be closed is looked at for work left. */
const RETIRE_POLL_MS = 500;
/** Skills of this many runs are kept parsed. */
const RUNS_KEPT = 64;

interface RunSkill {
  skill: Skill;
  backendName: string;
  judgeName: string | null;
  staleness: Staleness | null;
}

interface OpenBackend {
  backend: InferenceBackend;
  /** Made when the first trajectory comes: it needs to know what the backend can do, and a server may be away till then. */
  engine: Promise<AsyncRolloutEngine> | null;
  versions: VersionLine;
}

export class Material {
  /** Backends that opened, by name: what can be asked without waiting. */
  private readonly serving = new Map<string, InferenceBackend>();
  /** Why backends could not be opened that will be tried again, by name. */
  private readonly awaited = new Map<string, string>();
  private readonly openBackends = new Map<string, Promise<OpenBackend>>();
  private readonly skills = new Map<string, Promise<RunSkill>>();
  private readonly retiring = new Set<Promise<void>>();
  private closing = false;
  private readonly calls;

  constructor(private readonly options: MaterialOptions) {
    this.calls = options.metrics.histogram('studio_tool_call_seconds', 'How long tool calls took, by tool and result.');
  }

  async of(claim: ClaimedTrajectory): Promise<RunMaterial> {
    const { skill, backendName, judgeName, staleness } = await this.skillOf(claim.runId);
    const open = await this.open(await getBackend(this.options.database.db, backendName));
    const engine = await this.engineOf(open);
    const { versions } = open;
    const sandboxes = await this.options.sandboxes();
    const judge = judgeName === null ? null : await this.judgeOf(judgeName);
    const { tools, ambient } = this.options;
    return {
      engine,
      jobFor: ({ trajectoryId, task, seed }) => ({
        skill,
        deadlineMs: skill.deadlineMs,
        outdated: outdatedRule(staleness, versions, claim.redone),
        makeEnv: () =>
          new ToolEnv({
            trajectoryId,
            skill,
            task,
            tools,
            sandboxes,
            judge,
            seed,
            callLimitMs: CALL_LIMIT_MS,
            now: ambient.now,
            observe: ({ tool, status, durationMs }) => this.calls.observe(durationMs / 1000, { tool, status }),
          }),
      }),
    };
  }

  /** The log of a trajectory that could not begin gets its end: failed, with the reason. */
  async failBeforeStart(claim: ClaimedTrajectory, error: unknown): Promise<Session> {
    const { store, ambient } = this.options;
    const session = await Session.open({ sessionId: claim.sessionId, runId: claim.runId, store, now: ambient.now });
    if (session.state.phase === 'done') return session;
    const { message, stack = null } = error instanceof Error ? error : new Error(String(error));
    const end = {
      status: 'failed' as const,
      reward: null,
      components: {},
      answer: null,
      success: null,
      reason: message,
      error: { message, stack },
    };
    await session.append([{ type: 'task.completed', data: end }]);
    return session;
  }

  /** Opens the backend when it is not open yet. Throws from the error family. */
  async backendOf(name: string): Promise<InferenceBackend> {
    const { backend } = await this.open(await getBackend(this.options.database.db, name));
    return backend;
  }

  async health(name: string): Promise<{ ok: boolean; message: string; modelName: string | null }> {
    const backend = await this.backendOf(name);
    const health = await backend.health();
    if (!health.ok) return { ...health, modelName: null };
    const { modelName } = await backend.capabilities();
    return { ...health, modelName };
  }

  /**
   * Looks whether the turns a skill asks for can be had from a backend; returns what a reader of the run must know of
   * their form, or null. Throws Invalid when they cannot.
   */
  async planTurns(name: string, skill: Skill): Promise<string | null> {
    const backend = await this.backendOf(name);
    const { format, notice } = await chooseFormat(backend, skill.actionFormat);
    const tools = this.options.tools.schemas(skill.availableTools);
    turnConstraint(skill, { format, tools, startsInThought: false }, backend, await backend.capabilities());
    return notice;
  }

  /** Why requests to an open backend wait, as a sentence; null when they do not, or it is not open. */
  trouble(name: string): string | null {
    return this.serving.get(name)?.trouble?.() ?? this.awaited.get(name) ?? null;
  }

  /** Backends that are open now, by name; of two of one name (the settings were changed) the newer one. */
  opened(): ReadonlyMap<string, InferenceBackend> {
    return this.serving;
  }

  async closeEngines(): Promise<void> {
    this.closing = true;
    await Promise.all(this.retiring);
    await this.each(async ({ engine }) => (await engine?.catch(() => null))?.close());
  }

  async closeBackends(): Promise<void> {
    await this.each(({ backend }) => backend.close());
  }

  private async each(close: (open: OpenBackend) => Promise<void>): Promise<void> {
    const all = await Promise.allSettled(this.openBackends.values());
    await Promise.all(all.map((settled) => (settled.status === 'fulfilled' ? close(settled.value) : undefined)));
  }

  /** One backend a row; one that could not be opened is tried again by the next who asks. */
  private open(row: BackendRow): Promise<OpenBackend> {
    const key = `${row.id} ${row.revision}`;
    const known = this.openBackends.get(key);
    if (known) return known;
    const opening = this.openNew(row);
    for (const [oldKey, old] of this.openBackends) {
      if (!oldKey.startsWith(`${row.id} `)) continue;
      this.openBackends.delete(oldKey);
      this.retiring.add(this.retire(old));
    }
    this.openBackends.set(key, opening);
    opening.catch(() => this.openBackends.delete(key));
    return opening;
  }

  /** A backend whose settings were changed serves what it has begun and is then closed; new claims take the new one. */
  private async retire(opening: Promise<OpenBackend>): Promise<void> {
    const old = await opening.catch(() => null);
    if (!old) return;
    const { backend } = old;
    const engine = await old.engine?.catch(() => null);
    while (!this.closing && engine && engine.stats().running > 0) await sleep(RETIRE_POLL_MS);
    if (this.serving.get(backend.name) === backend) this.serving.delete(backend.name);
    await engine?.close();
    await backend.close();
  }

  private async openNew(row: BackendRow): Promise<OpenBackend> {
    const versions = new VersionLine(await succeededVersions(this.options.database.db, row.id));
    try {
      const backend = await openBackend(row, this.options);
      this.awaited.delete(row.name);
      this.serving.set(row.name, backend);
      return { backend, engine: null, versions };
    } catch (error) {
      if (isTransient(error)) this.awaited.set(row.name, error.message);
      throw error;
    }
  }

  /** One that could not be made (no server answers) is tried again by the next who asks. */
  private engineOf(open: OpenBackend): Promise<AsyncRolloutEngine> {
    if (open.engine) return open.engine;
    const making = this.makeEngine(open);
    open.engine = making;
    making.catch(() => (open.engine = null));
    return making;
  }

  private async makeEngine({ backend, versions }: OpenBackend): Promise<AsyncRolloutEngine> {
    const { store, toolWorkers, ambient, logger } = this.options;
    const capabilities = await backend.capabilities();
    versions.note(await backend.weightVersion());
    return new AsyncRolloutEngine({ backend, capabilities, store, toolWorkers, ambient, logger });
  }

  private async judgeOf(name: string): Promise<Judge> {
    const { backend } = await this.open(await getBackend(this.options.database.db, name));
    return createJudge(backend, this.options.ambient.random);
  }

  private skillOf(runId: string): Promise<RunSkill> {
    const known = this.skills.get(runId);
    if (known) return known;
    const reading = this.readSkill(runId);
    this.skills.set(runId, reading);
    reading.catch(() => this.skills.delete(runId));
    const oldest = this.skills.keys().next();
    if (this.skills.size > RUNS_KEPT && !oldest.done) this.skills.delete(oldest.value);
    return reading;
  }

  private async readSkill(runId: string): Promise<RunSkill> {
    const { database, tools } = this.options;
    const run = await getRunSettings(database.db, runId);
    const parsed = parseSkill(run.skillYaml, { tools: tools.names(), scorers: SCORER_NAMES });
    const options = readRunOptions(run.options);
    const skill = applyRunOptions(parsed, options);
    const { judge, staleness } = options;
    return { skill, backendName: run.backendName, judgeName: judge, staleness };
  }
}
