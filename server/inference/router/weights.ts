/**
 * New weights on many servers. Draining goes from one to the next, so that the others serve meanwhile; what stops or
 * moves tensors is done by all at once. In the end all that serve have the same weights: who could not take them is out.
 */
import { Conflict, isStudioError, Unavailable } from '../../core/errors';
import { MIXED } from '../../core/tokens/chunk';
import type { Logger } from '../../observability/logger';
import type { InferenceBackend, WeightUpdate } from '../backend';
import { RecentKeys } from '../recent-keys';
import { behindName } from '../remote/server-name';
import { ended } from '../remote/server-words';
import { isRepeatable, retold, sentenceOf, within } from './failures';
import type { Found, Replica } from './replica';

interface Outcome {
  replica: Replica;
  /** Null when it serves the new weights. */
  error: unknown;
}

export interface FleetWeightsOptions {
  backend: string;
  replicas: readonly Replica[];
  logger: Logger;
  /** A server that has not told its label for that long is not waited for. */
  answerMs: number;
  changed(): void;
}

/** Labels of earlier weights that are remembered. */
const REMEMBERED = 1000;

export class FleetWeights {
  readonly #options: FleetWeightsOptions;
  /** The update that a server made last; what comes back later must have it too. */
  #last: WeightUpdate | null = null;
  #running: WeightUpdate | null = null;
  /** Label that all served before the update that runs. */
  #before: string | null = null;
  /** Labels that an update has replaced: a server that says one of them was started again, or missed the update. */
  readonly #replaced = new RecentKeys<true>(REMEMBERED);
  /** Starts of a server when it took its last weights from here: one that was started again has its first ones, whatever it calls them. */
  readonly #tookAt = new Map<Replica, number>();

  constructor(options: FleetWeightsOptions) {
    this.#options = options;
  }

  /** Label of the weights being brought now. */
  get updatingTo(): string | null {
    return this.#running?.version ?? null;
  }

  /** Whether no other has newer weights, as far as that is known. */
  isNewest(replica: Replica): boolean {
    return this.#last === null || replica.version === this.#last.version;
  }

  /** The newest label that all serve; null while no server has answered. */
  label(): string | null {
    const only = this.#common();
    const known = this.#options.replicas.find((one) => one.version !== null)?.version ?? null;
    return only ?? (this.#running ? this.#before : this.#last?.version) ?? known;
  }

  /** Asks all that serve for their label: a trainer may have changed it without us. */
  async refresh(): Promise<void> {
    const { answerMs, replicas } = this.#options;
    const asked = replicas.map(async (replica) => {
      const { version, server } = replica;
      if (!server || !replica.serving || replica.updating) return;
      const silence = `The server ${replica.url} did not tell the label of its weights`;
      const now = await within(server.backend.weightVersion(), answerMs, silence).catch(() => null);
      if (now === null || now === version || replica.updating || replica.version !== version) return;
      if (this.#wasReplaced(now) || this.#startedAgain(replica, server.backend))
        replica.doubt(`It says that it serves ${now}; it was ${version}.`);
      else replica.version = now;
    });
    await Promise.all(asked);
    const only = this.#common();
    if (!this.#running && this.#last && only !== null && only !== this.#last.version) this.#last = null;
  }

  async update(update: WeightUpdate): Promise<void> {
    const { backend, replicas } = this.#options;
    if (this.#running)
      throw new Conflict(
        `The weights of the backend ${backend} are being changed to ${this.#running.version} already; wait for that to end.`,
      );
    // One that could not take the last ones may take these.
    const targets = replicas.filter((one) => one.server && (one.serving || one.refusedVersion !== null));
    if (targets.length === 0)
      throw new Unavailable(
        `No server of the backend ${backend} answers, so none can take new weights: ${replicas[0]?.reason ?? 'there is none'}`,
      );
    this.#before = this.label();
    this.#running = update;
    try {
      const inTurn = (update.inFlight ?? 'drain') === 'drain' && update.source.kind !== 'external';
      const outcomes = inTurn ? await this.#inTurn(targets, update) : await this.#atOnce(targets, update);
      this.#conclude(update, outcomes);
    } finally {
      this.#running = null;
      // One that came back in between has the old ones.
      for (const late of replicas)
        if (late.serving && !targets.includes(late) && !this.isNewest(late))
          late.doubt(`It came back while the weights were changed to ${update.version}.`);
      this.#options.changed();
    }
  }

  /** Brings the weights of the last update to a server that answers again without them. Throws when it cannot have them. */
  async bringUpToDate(replica: Replica, { server, version }: Found): Promise<string> {
    const last = this.#last;
    if (!last || version === last.version) {
      replica.refusedVersion = null;
      return version;
    }
    // A label we never replaced came from elsewhere, and tensors that a trainer moved cannot be brought again: then it
    // serves when no other has room.
    const first = this.#wasReplaced(version) || this.#startedAgain(replica, server.backend);
    if (last.source.kind === 'external' || !first) return version;
    if (replica.refusedVersion === last.version)
      throw new Unavailable(
        `The server ${replica.url} serves the weights ${version} and could not take ${last.version}; it is left out until it has them.`,
      );
    replica.updating = true;
    try {
      await this.#bring(replica, server.backend, last);
      return last.version;
    } catch (error) {
      if (!isRepeatable(error)) replica.refusedVersion = last.version;
      throw error;
    } finally {
      replica.updating = false;
    }
  }

  /** Of one that nobody knows the weights of (`old→new`), the old ones count. */
  #wasReplaced(label: string): boolean {
    const [oldest = label] = label.split(MIXED);
    return this.#replaced.get(oldest) === true;
  }

  /** What all that serve say; null when they differ. */
  #common(): string | null {
    const versions = new Set(this.#options.replicas.filter((one) => one.serving).map((one) => one.version));
    const [only] = versions;
    return versions.size === 1 ? (only ?? null) : null;
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
    const { server, version: old } = replica;
    if (!server)
      return new Unavailable(`The server ${replica.url} is down: ${replica.reason}`, { retry: true, reached: false });
    replica.updating = true;
    this.#options.changed();
    try {
      await this.#bring(replica, server.backend, update);
      if (old !== null && old !== update.version) this.#replaced.set(old, true);
      this.#replaced.delete(update.version);
      this.#last = update;
      replica.version = update.version;
      replica.capabilities = await server.backend.capabilities();
      replica.refusedVersion = null;
      if (!replica.serving) replica.askNow();
      return null;
    } catch (error) {
      replica.noteError(error);
      if (isRepeatable(error)) replica.doubt(error);
      return error;
    } finally {
      replica.updating = false;
      this.#options.changed();
    }
  }

  #startedAgain(replica: Replica, server: InferenceBackend): boolean {
    const starts = this.#tookAt.get(replica);
    return starts !== undefined && starts !== (server.starts?.() ?? 0);
  }

  async #bring(replica: Replica, server: InferenceBackend, update: WeightUpdate): Promise<void> {
    await server.updateWeights(update);
    const version = await server.weightVersion();
    if (version !== update.version)
      throw new Unavailable(`After the update the server says that it serves ${version} and not ${update.version}.`);
    this.#tookAt.set(replica, server.starts?.() ?? 0);
  }

  #conclude(update: WeightUpdate, outcomes: readonly Outcome[]): void {
    const { backend, logger } = this.#options;
    const failed = outcomes.filter((one) => one.error !== null);
    if (failed.length === 0) return;
    const done = outcomes.filter((one) => one.error === null);
    for (const { replica, error } of failed) {
      // One that broke down under it gets the weights when it comes back; one that refused them does not, and is out as
      // soon as another has them. What nobody knows the weights of is out in any case.
      if (isRepeatable(error) || (done.length === 0 && !servesUnknown(error))) continue;
      replica.refusedVersion = update.version;
      replica.takeOut(`It could not take the weights ${update.version}: ${sentenceOf(error)}`);
    }
    // Each says which server it is by itself; here its address stands before it.
    const why = failed
      .map(
        ({ replica: { url }, error }) =>
          `${url}: ${ended(whyOf(error) ?? behindName(sentenceOf(error), { backend, url }))}`,
      )
      .join(' ');
    logger.error({ backend, version: update.version, why }, 'Not all servers took the new weights.');
    const first = failed[0]?.error;
    if (done.length === 0 && this.#options.replicas.length === 1) throw retold(first, sentenceOf(first));
    if (done.length === 0) {
      const serving = this.#options.replicas.some((one) => one.serving);
      const still = serving ? ` The weights ${this.#before} go on serving.` : '';
      throw retold(first, `No server of the backend ${backend} took the weights ${update.version}. ${why}${still}`);
    }
    const [taken, left] = [done, failed].map((some) => listed(some.map(({ replica }) => replica.url)));
    throw retold(
      first,
      `The weights ${update.version} are served by ${taken} alone; ${left} did not take them and serves nobody now. ${why}`,
    );
  }
}

/** A remote backend says so where the failure came too late to go back. */
function servesUnknown(error: unknown): boolean {
  return isStudioError(error) && error.details.serving === null;
}

/** Only the reason, where the rest of the sentence is that it took them not and goes on with the old ones. */
function whyOf(error: unknown): string | null {
  return isStudioError(error) && typeof error.details.why === 'string' ? error.details.why : null;
}

const MOST_NAMED = 8;

function listed(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMED).join(', ');
  return names.length > MOST_NAMED ? `${shown} and ${names.length - MOST_NAMED} more` : shown;
}
