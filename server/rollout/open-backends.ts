/**
 * The backends that are open in this process. One whose settings or capabilities were changed is opened anew for what
 * comes, and the old one is closed when nobody uses it any more.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../db/connection';
import { type BackendRow, getBackend } from '../../db/queries/catalog';
import { keepServerLabel, serverLabel } from '../../db/queries/server-labels';
import { settleWeightUpdates, succeededVersions, unfinishedUpdate } from '../../db/queries/weight-updates';
import { Cancelled, isTransient } from '../core/errors';
import type { InferenceBackend, WeightUpdate } from '../inference/backend';
import type { StoredUpdates } from '../inference/router/left-behind';
import type { AsyncRolloutEngine } from './engine';
import { type OpenBackendOptions, openBackend } from './open-backend';
import { VersionLine } from './version-line';

export interface OpenBackendsOptions extends OpenBackendOptions {
  database: Database;
  /** How often a backend that is to be closed is looked at for work left. */
  retirePollMs?: number;
  /** Old ones that can serve nothing for that long give up what they hold. */
  handOverMs?: number;
  /** Steps that have not let go of their backend after so long lose it, when all is closed. */
  graceMs?: number;
}

export interface OpenBackend {
  backend: InferenceBackend;
  /** Made when the first trajectory comes: it needs to know what the backend can do, and a server may be away till then. */
  engine: Promise<AsyncRolloutEngine> | null;
  versions: VersionLine;
}

/** A backend that stays open until it is released, whatever is changed meanwhile. */
export interface HeldBackend extends Pick<OpenBackend, 'backend'> {
  open: OpenBackend;
  release(): void;
}

interface Entry {
  name: string;
  opening: Promise<OpenBackend>;
  /** Trajectories, scoring and weight updates that need it. */
  holds: number;
}

const RETIRE_POLL_MS = 500;
const HAND_OVER_MS = 5_000;
const GRACE_MS = 2_000;

export class OpenBackends {
  /** Backends that opened, by name: what can be asked without waiting. */
  private readonly serving = new Map<string, InferenceBackend>();
  /** Why backends could not be opened that will be tried again, by name. */
  private readonly awaited = new Map<string, string>();
  /** By row and revision. */
  private readonly entries = new Map<string, Entry>();
  private readonly retiring = new Map<Entry, Promise<void>>();
  private readonly closing = new AbortController();

  constructor(private readonly options: OpenBackendsOptions) {}

  /** Aborted when all is being closed: nothing is opened and no engine made any more. */
  get closed(): AbortSignal {
    return this.closing.signal;
  }

  /** Opens the backend when it is not open yet. Throws from the error family. */
  async hold(name: string): Promise<HeldBackend> {
    const entry = this.entryOf(await getBackend(this.options.database.db, name));
    entry.holds += 1;
    let held = true;
    const release = (): void => {
      if (held) entry.holds -= 1;
      held = false;
    };
    try {
      const open = await entry.opening;
      return { open, backend: open.backend, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async use<T>(name: string, work: (backend: InferenceBackend) => Promise<T>): Promise<T> {
    const { backend, release } = await this.hold(name);
    try {
      return await work(backend);
    } finally {
      release();
    }
  }

  /** The one that serves now, and behind it those of earlier settings that end what they began. */
  async all(name: string): Promise<[InferenceBackend, ...InferenceBackend[]]> {
    const { opening } = this.entryOf(await getBackend(this.options.database.db, name));
    const { backend } = await opening;
    const earlier = await Promise.all(
      [...this.retiring.keys()].filter((entry) => entry.name === name).map((entry) => entry.opening.catch(() => null)),
    );
    return [backend, ...earlier.flatMap((open) => (open ? [open.backend] : []))];
  }

  /** Why requests to an open backend wait, as a sentence; null when they do not, or it is not open. */
  trouble(name: string): string | null {
    return this.serving.get(name)?.trouble?.() ?? this.awaited.get(name) ?? null;
  }

  /** Backends that are open now, by name; of two of one name the newer one. */
  opened(): ReadonlyMap<string, InferenceBackend> {
    return this.serving;
  }

  async closeEngines(): Promise<void> {
    // A model that is still loading is not waited for.
    this.closing.abort(new Cancelled('The studio is stopping.'));
    const closed = Promise.all([
      ...this.retiring.values(),
      this.each(async ({ engine }) => (await engine?.catch(() => null))?.close()),
    ]);
    const { graceMs = GRACE_MS } = this.options;
    const lingers = sleep(graceMs, true, { ref: false });
    // A step may wait for a server that is away, as long as its backend is open.
    if (await Promise.race([closed.then(() => false), lingers])) await this.closeBackends();
    await closed;
  }

  async closeBackends(): Promise<void> {
    await this.each(({ backend }) => backend.close());
  }

  private async each(close: (open: OpenBackend) => Promise<void>): Promise<void> {
    const all = await Promise.allSettled([...this.entries.values()].map(({ opening }) => opening));
    await Promise.all(all.map((settled) => (settled.status === 'fulfilled' ? close(settled.value) : undefined)));
  }

  /** One backend a row; one that could not be opened is tried again by the next who asks. */
  private entryOf(row: BackendRow): Entry {
    const key = `${row.id} ${row.revision}`;
    const known = this.entries.get(key);
    if (known) return known;
    this.closed.throwIfAborted();
    const entry: Entry = { name: row.name, opening: this.openNew(row), holds: 0 };
    for (const [oldKey, old] of this.entries) {
      if (!oldKey.startsWith(`${row.id} `)) continue;
      this.entries.delete(oldKey);
      const retired = this.retire(old).finally(() => this.retiring.delete(old));
      this.retiring.set(old, retired);
    }
    this.entries.set(key, entry);
    entry.opening.catch(() => this.entries.delete(key));
    return entry;
  }

  /**
   * It serves what it has begun and is then closed. Where it can serve nothing any more (its servers have become others,
   * or it is paused) its trajectories go on from their logs with the new one.
   */
  private async retire(entry: Entry): Promise<void> {
    const { retirePollMs = RETIRE_POLL_MS, handOverMs = HAND_OVER_MS, ambient } = this.options;
    const old = await entry.opening.catch(() => null);
    if (!old) return;
    const { backend } = old;
    // Whoever holds it may make the engine only now.
    const closeEngine = async () => (await old.engine?.catch(() => null))?.close();
    let servedAtMs = ambient.now();
    while (!this.closing.signal.aborted && entry.holds > 0) {
      if ((backend.trouble?.() ?? null) === null) servedAtMs = ambient.now();
      else if (ambient.now() - servedAtMs > handOverMs) await closeEngine();
      await sleep(retirePollMs);
    }
    if (this.serving.get(backend.name) === backend) this.serving.delete(backend.name);
    await closeEngine();
    await backend.close();
  }

  private async openNew(row: BackendRow): Promise<OpenBackend> {
    const versions = new VersionLine(await succeededVersions(this.options.database.db, row.id));
    try {
      const backend = await openBackend(row, this.storedUpdates(row.id), this.options, this.closing.signal);
      this.awaited.delete(row.name);
      this.serving.set(row.name, backend);
      return { backend, engine: null, versions };
    } catch (error) {
      if (isTransient(error)) this.awaited.set(row.name, error.message);
      throw error;
    }
  }

  private storedUpdates(backendId: string): StoredUpdates {
    const { database, ambient } = this.options;
    return {
      unfinished: async () => {
        const found = await unfinishedUpdate(database.db, { backendId, nowMs: ambient.now() });
        if (!found) return null;
        const { version, source, inFlight, before, goesOn } = found;
        const named = before.map((earlier) => ({ ...earlier, source: sourceOf(earlier.source) }));
        return { update: { version, source: sourceOf(source), inFlight }, before: named, goesOn };
      },
      labelOf: (url, fingerprint) => serverLabel(database.db, { backendId, url, fingerprint }),
      keepLabel: (url, fingerprint, version) => keepServerLabel(database.db, { backendId, url, fingerprint, version }),
      settled: () => database.db.transaction((tx) => settleWeightUpdates(tx, { backendId, nowMs: ambient.now() })),
    };
  }
}

function sourceOf({
  kind,
  path = '',
}: {
  kind: WeightUpdate['source']['kind'];
  path?: string;
}): WeightUpdate['source'] {
  return kind === 'external' ? { kind } : { kind, path };
}
