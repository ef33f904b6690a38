/**
 * What trajectories are made from, kept while it is in use: open backends with their engines, the parsed skill of each
 * run, and for each claim the environment it acts in.
 */
import { isAbsolute, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../db/connection';
import { type BackendRow, getBackend } from '../../db/queries/catalog';
import { getRunSettings } from '../../db/queries/runs';
import type { ClaimedTrajectory } from '../../db/queries/trajectories';
import { turnGrammar } from '../core/actions/grammar';
import type { Ambient } from '../core/ambient';
import { Invalid } from '../core/errors';
import { SCORER_NAMES } from '../core/rewards/registry';
import { parseSkill } from '../core/skills/parse';
import type { Skill } from '../core/skills/skill';
import { Session, type SessionStore } from '../harness/session';
import type { InferenceBackend } from '../inference/backend';
import { EmbeddedBackend } from '../inference/embedded/embedded-backend';
import type { Logger } from '../observability/logger';
import type { Metrics } from '../observability/metrics';
import type { SandboxPool } from '../sandbox/sandbox';
import type { ToolRegistry } from '../tools/registry';
import { AsyncRolloutEngine } from './engine';
import { createJudge, type Judge } from './judge';
import { applyRunOptions, readRunOptions } from './run-options';
import { ToolEnv } from './tool-env';
import type { RunMaterial } from './worker';

export interface MaterialOptions {
  database: Database;
  ambient: Ambient;
  logger: Logger;
  packageRoot: string;
  threads: number;
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
  grammar: string | null;
  backendName: string;
  judgeName: string | null;
}

interface OpenBackend {
  backend: InferenceBackend;
  engine: AsyncRolloutEngine;
}

export class Material {
  private readonly opened = new Map<string, Promise<OpenBackend>>();
  private readonly skills = new Map<string, Promise<RunSkill>>();
  private readonly retiring = new Set<Promise<void>>();
  private closing = false;
  private readonly calls;

  constructor(private readonly options: MaterialOptions) {
    this.calls = options.metrics.histogram('studio_tool_call_seconds', 'How long tool calls took, by tool and result.');
  }

  async of(claim: ClaimedTrajectory): Promise<RunMaterial> {
    const { skill, grammar, backendName, judgeName } = await this.skillOf(claim.runId);
    const { engine } = await this.open(await getBackend(this.options.database.db, backendName));
    const sandboxes = await this.options.sandboxes();
    const judge = judgeName === null ? null : await this.judgeOf(judgeName);
    const { tools, ambient } = this.options;
    return {
      engine,
      jobFor: ({ trajectoryId, task, seed }) => ({
        skill,
        grammar,
        deadlineMs: skill.deadlineMs,
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
  async health(name: string): Promise<{ ok: boolean; message: string; modelName: string | null }> {
    const { backend } = await this.open(await getBackend(this.options.database.db, name));
    const [health, { modelName }] = await Promise.all([backend.health(), backend.capabilities()]);
    return { ...health, modelName };
  }

  async closeEngines(): Promise<void> {
    this.closing = true;
    await Promise.all(this.retiring);
    await this.each(({ engine }) => engine.close());
  }

  async closeBackends(): Promise<void> {
    await this.each(({ backend }) => backend.close());
  }

  private async each(close: (open: OpenBackend) => Promise<void>): Promise<void> {
    const all = await Promise.allSettled(this.opened.values());
    await Promise.all(all.map((settled) => (settled.status === 'fulfilled' ? close(settled.value) : undefined)));
  }

  /** One backend a row; one that could not be opened is tried again by the next who asks. */
  private open(row: BackendRow): Promise<OpenBackend> {
    const key = `${row.id} ${JSON.stringify(row.settings)}`;
    const known = this.opened.get(key);
    if (known) return known;
    const opening = this.openNew(row);
    for (const [oldKey, old] of this.opened) {
      if (!oldKey.startsWith(`${row.id} `)) continue;
      this.opened.delete(oldKey);
      this.retiring.add(this.retire(old));
    }
    this.opened.set(key, opening);
    opening.catch(() => this.opened.delete(key));
    return opening;
  }

  /** A backend whose settings were changed serves what it has begun and is then closed; new claims take the new one. */
  private async retire(opening: Promise<OpenBackend>): Promise<void> {
    const old = await opening.catch(() => null);
    if (!old) return;
    while (!this.closing && old.engine.stats().running > 0) await sleep(RETIRE_POLL_MS);
    await old.engine.close();
    await old.backend.close();
  }

  private async openNew(row: BackendRow): Promise<OpenBackend> {
    const { packageRoot, threads, logger, store, toolWorkers, ambient } = this.options;
    const { modelPath } = row.settings;
    if (typeof modelPath !== 'string')
      throw new Invalid(
        `The backend ${row.name} names no model file. Add it again with: studio backend ${row.name} --model FILE`,
      );
    const backend = await EmbeddedBackend.open({
      name: row.name,
      modelPath: isAbsolute(modelPath) ? modelPath : join(packageRoot, modelPath),
      threads,
      logger,
    });
    const capabilities = await backend.capabilities();
    return { backend, engine: new AsyncRolloutEngine({ backend, capabilities, store, toolWorkers, ambient, logger }) };
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
    const grammar = skill.constrainActions ? turnGrammar(skill, tools.schemas(skill.availableTools)) : null;
    return { skill, grammar, backendName: run.backendName, judgeName: options.judge };
  }
}
