/**
 * What trajectories are made from, kept while it is in use: open backends with their engines, the parsed skill of each
 * run, and for each claim the environment it acts in.
 */
import { getRunSettings } from '../../db/queries/runs';
import type { ClaimedTrajectory } from '../../db/queries/trajectories';
import type { BackendHealth } from '../core/inference';
import { SCORER_NAMES } from '../core/rewards/registry';
import { parseSkill } from '../core/skills/parse';
import type { Skill } from '../core/skills/skill';
import { chooseFormat } from '../harness/choose-format';
import { Session, type SessionStore } from '../harness/session';
import { turnConstraint } from '../harness/turn-limits';
import { untilAborted } from '../inference/remote/serving-gate';
import type { Metrics } from '../observability/metrics';
import type { SandboxPool } from '../sandbox/sandbox';
import type { ToolRegistry } from '../tools/registry';
import { AsyncRolloutEngine } from './engine';
import { createJudge } from './judge';
import { type HeldBackend, type OpenBackend, OpenBackends, type OpenBackendsOptions } from './open-backends';
import { outdatedRule } from './outdated';
import { applyRunOptions, readRunOptions, type Staleness } from './run-options';
import { ToolEnv } from './tool-env';
import type { RunMaterial } from './worker';

export interface MaterialOptions extends OpenBackendsOptions {
  store: SessionStore;
  tools: ToolRegistry;
  sandboxes: () => Promise<SandboxPool>;
  toolWorkers: number;
  metrics: Metrics;
}

/** Milliseconds a tool call may take, its wait for a sandbox included. */
const CALL_LIMIT_MS = 90_000;
/** Skills of this many runs are kept parsed. */
const RUNS_KEPT = 64;

interface RunSkill {
  skill: Skill;
  backendName: string;
  judgeName: string | null;
  staleness: Staleness | null;
}

export class Material {
  readonly backends: OpenBackends;
  private readonly skills = new Map<string, Promise<RunSkill>>();
  private readonly calls;

  constructor(private readonly options: MaterialOptions) {
    this.backends = new OpenBackends(options);
    this.calls = options.metrics.histogram('studio_tool_call_seconds', 'How long tool calls took, by tool and result.');
  }

  /** The backends it needs stay open until it is released. */
  async of(claim: ClaimedTrajectory): Promise<RunMaterial> {
    const { skill, backendName, judgeName, staleness } = await this.skillOf(claim.runId);
    const held: HeldBackend[] = [];
    const hold = async (name: string): Promise<OpenBackend> => {
      const one = await this.backends.hold(name);
      held.push(one);
      return one.open;
    };
    const release = (): void => {
      for (const one of held) one.release();
    };
    try {
      const open = await hold(backendName);
      const engine = await this.engineOf(open);
      const sandboxes = await this.options.sandboxes();
      const { tools, ambient } = this.options;
      const judge = judgeName === null ? null : createJudge((await hold(judgeName)).backend, ambient.random);
      return {
        engine,
        release,
        jobFor: ({ trajectoryId, task, seed }) => ({
          skill,
          deadlineMs: skill.deadlineMs,
          outdated: outdatedRule(staleness, open.versions, claim.redone),
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
    } catch (error) {
      release();
      throw error;
    }
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

  async health(name: string): Promise<BackendHealth & { modelName: string | null }> {
    return this.backends.use(name, async (backend) => {
      const health = await backend.health();
      if (!health.ok) return { ...health, modelName: null };
      const { modelName } = await backend.capabilities();
      return { ...health, modelName };
    });
  }

  /**
   * Looks whether the turns a skill asks for can be had from a backend; returns what a reader of the run must know of
   * their form, or null. Throws Invalid when they cannot.
   */
  async planTurns(name: string, skill: Skill): Promise<string | null> {
    return this.backends.use(name, async (backend) => {
      const { format, notice } = await chooseFormat(backend, skill.actionFormat);
      const tools = this.options.tools.schemas(skill.availableTools);
      turnConstraint(skill, { format, tools, startsInThought: false }, backend, await backend.capabilities());
      return notice;
    });
  }

  /** One that could not be made (no server answers) is tried again by the next who asks. */
  private engineOf(open: OpenBackend): Promise<AsyncRolloutEngine> {
    if (open.engine) return open.engine;
    // Nobody would close it any more.
    this.backends.closed.throwIfAborted();
    const making = this.makeEngine(open);
    open.engine = making;
    making.catch(() => (open.engine = null));
    return making;
  }

  private async makeEngine({ backend, versions }: OpenBackend): Promise<AsyncRolloutEngine> {
    const { store, toolWorkers, ambient, logger } = this.options;
    // A server may not answer for long; who closes does not wait for it.
    const asked = Promise.all([backend.capabilities(), backend.weightVersion()]);
    const [capabilities, version] = await untilAborted(asked, this.backends.closed);
    versions.note(version);
    return new AsyncRolloutEngine({ backend, capabilities, store, toolWorkers, ambient, logger });
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
