/**
 * New weights on many servers. Draining goes from one to the next, so that the others serve meanwhile; what stops or
 * moves tensors is done by all at once. In the end all that serve have the same weights: who could not take them is out.
 */
import { Conflict, Unavailable } from '../../core/errors';
import type { Logger } from '../../observability/logger';
import type { InferenceBackend, WeightUpdate } from '../backend';
import { isRepeatable, retold, sentenceOf } from './failures';
import type { Replica } from './replica';

interface Outcome {
  replica: Replica;
  /** Null when it serves the new weights. */
  error: unknown;
}

export interface FleetWeightsOptions {
  backend: string;
  replicas: readonly Replica[];
  logger: Logger;
  changed(): void;
}

export class FleetWeights {
  readonly #options: FleetWeightsOptions;
  /** The update that a server made last; what comes back later must have it too. */
  #last: WeightUpdate | null = null;
  #running: WeightUpdate | null = null;
  /** Label that all served before the update that runs. */
  #before: string | null = null;

  constructor(options: FleetWeightsOptions) {
    this.#options = options;
  }

  /** Label of the weights being brought now. */
  get updatingTo(): string | null {
    return this.#running?.version ?? null;
  }

  /** Of two servers with unlike weights, whether this one has the newer, as far as that is known. */
  isNewest(replica: Replica): boolean {
    return this.#last === null || replica.version === this.#last.version;
  }

  /** The newest label that all serve; null while no server has answered. */
  label(): string | null {
    const versions = new Set(this.#options.replicas.filter((one) => one.serving).map((one) => one.version));
    const [only] = versions;
    if (versions.size === 1 && only !== undefined) return only;
    const known = this.#options.replicas.find((one) => one.version !== null)?.version ?? null;
    return (this.#running ? this.#before : this.#last?.version) ?? only ?? known;
  }

  /** Asks all that serve for their label: a trainer may have changed it without us. */
  async refresh(): Promise<void> {
    const asked = this.#options.replicas.map(async (replica) => {
      const { server } = replica;
      if (!server || replica.updating) return;
      replica.version = await server.backend.weightVersion().catch(() => replica.version);
    });
    await Promise.all(asked);
    const versions = new Set(this.#options.replicas.filter((one) => one.serving).map((one) => one.version));
    const [only] = versions;
    if (!this.#running && versions.size === 1 && this.#last && only !== this.#last.version) this.#last = null;
  }

  async update(update: WeightUpdate): Promise<void> {
    const { backend, replicas } = this.#options;
    if (this.#running)
      throw new Conflict(
        `The weights of the backend ${backend} are being changed to ${this.#running.version} already; wait for that to end.`,
      );
    const targets = replicas.filter((one) => one.serving);
    if (targets.length === 0)
      throw new Unavailable(
        `No server of the backend ${backend} answers, so none can take new weights: ${replicas[0]?.reason ?? 'there is none'}`,
      );
    this.#before = this.label();
    this.#running = update;
    try {
      const inTurn = (update.inFlight ?? 'drain') === 'drain' && update.source.kind !== 'external';
      const outcomes = inTurn ? await this.#inTurn(targets, update) : await this.#atOnce(targets, update);
      this.#conclude(update, outcomes, targets);
    } finally {
      this.#running = null;
      // One that came back in between has the old ones.
      for (const late of replicas)
        if (late.serving && !targets.includes(late) && !this.isNewest(late))
          late.doubt(new Unavailable(`It came back while the weights were changed to ${update.version}.`), late.server);
      this.#options.changed();
    }
  }

  /**
   * Brings the weights of the last update to a server that answers again without them. Throws when it cannot have them.
   * @returns the label it serves then
   */
  async bringUpToDate(replica: Replica, server: InferenceBackend, version: string): Promise<string> {
    const last = this.#last;
    if (!last || version === last.version) {
      replica.refusedVersion = null;
      return version;
    }
    // Tensors that a trainer moved cannot be brought again: it serves only when no other has room.
    if (last.source.kind === 'external') return version;
    if (replica.refusedVersion === last.version)
      throw new Unavailable(
        `The server ${replica.url} serves the weights ${version} and could not take ${last.version}; it is left out until it has them.`,
      );
    replica.updating = true;
    try {
      await this.#bring(server, last);
      return last.version;
    } catch (error) {
      if (!isRepeatable(error)) replica.refusedVersion = last.version;
      throw error;
    } finally {
      replica.updating = false;
    }
  }

  /** Ends with the first failure that says that the update itself is wrong: then all go on with the old weights. */
  async #inTurn(targets: readonly Replica[], update: WeightUpdate): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    for (const replica of targets) {
      const error = await this.#updateOne(replica, update);
      outcomes.push({ replica, error });
      if (error !== null && !isRepeatable(error) && outcomes.every((one) => one.error !== null)) break;
    }
    return outcomes;
  }

  async #atOnce(targets: readonly Replica[], update: WeightUpdate): Promise<Outcome[]> {
    // None takes a request before all are through: with old weights it would only be stopped again.
    for (const replica of targets) replica.updating = true;
    this.#options.changed();
    const errors = await Promise.all(targets.map((replica) => this.#updateOne(replica, update)));
    return targets.map((replica, k) => ({ replica, error: errors[k] ?? null }));
  }

  async #updateOne(replica: Replica, update: WeightUpdate): Promise<unknown> {
    const { server } = replica;
    if (!server)
      return new Unavailable(`The server ${replica.url} is down: ${replica.reason}`, { retry: true, reached: false });
    replica.updating = true;
    this.#options.changed();
    try {
      await this.#bring(server.backend, update);
      replica.version = update.version;
      replica.refusedVersion = null;
      this.#last = update;
      return null;
    } catch (error) {
      replica.noteError(error);
      if (isRepeatable(error)) replica.doubt(error, server);
      else replica.version = await server.backend.weightVersion().catch(() => replica.version);
      return error;
    } finally {
      replica.updating = false;
      this.#options.changed();
    }
  }

  async #bring(server: InferenceBackend, update: WeightUpdate): Promise<void> {
    await server.updateWeights(update);
    const version = await server.weightVersion();
    if (version !== update.version)
      throw new Unavailable(`After the update the server says that it serves ${version} and not ${update.version}.`);
  }

  #conclude(update: WeightUpdate, outcomes: readonly Outcome[], targets: readonly Replica[]): void {
    const { backend, logger } = this.#options;
    const failed = outcomes.filter((one) => one.error !== null);
    if (failed.length === 0) return;
    const done = outcomes.filter((one) => one.error === null);
    const why = failed.map(({ replica, error }) => `${replica.url}: ${sentenceOf(error)}`).join(' ');
    if (done.length === 0) {
      const serving = listed(targets.map((one) => one.url));
      throw retold(
        failed[0]?.error,
        `No server of the backend ${backend} took the weights ${update.version}; ${serving} keep ${this.#before}. ${why}`,
      );
    }
    for (const { replica, error } of failed) {
      // A server that broke down under it gets the weights when it comes back; one that refused them does not.
      if (isRepeatable(error)) continue;
      replica.refusedVersion = update.version;
      replica.takeOut(`It could not take the weights ${update.version}: ${sentenceOf(error)}`);
    }
    logger.error({ backend, version: update.version, why }, 'Not all servers took the new weights.');
    const out = failed.map(({ replica }) => `${replica.url} (${replica.version})`);
    throw retold(
      failed[0]?.error,
      `The weights ${update.version} are served by ${listed(done.map(({ replica }) => replica.url))} alone; ${listed(out)} could not take them and serve nobody now. ${why}`,
    );
  }
}

const MOST_NAMED = 8;

function listed(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMED).join(', ');
  return names.length > MOST_NAMED ? `${shown} and ${names.length - MOST_NAMED} more` : shown;
}
