/** What the servers of a backend can do together, and which of them belong to it: what was told once must hold. */
import { Invalid } from '../../core/errors';
import type { BackendCapabilities } from '../backend';
import { disagreement, together } from './agreement';
import type { Found, Replica } from './replica';

export interface MembershipOptions {
  backend: string;
  replicas: readonly Replica[];
  /** What the servers were when the backend was added; without it what they are when somebody first asks. */
  expected: BackendCapabilities | null;
  /** Requests in flight with each server; absent: what the server itself is good for. */
  maxInFlight: number | undefined;
}

/** Of a server that has not said yet how many requests it is good for. */
const IN_FLIGHT = 64;

export class Membership {
  readonly #options: MembershipOptions;
  #announced: BackendCapabilities | null;
  /** Some servers are called after their weights: the names before and after an update are of one model. */
  readonly #names = new Set<string>();

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#announced = options.expected;
    if (options.expected) this.#names.add(options.expected.modelName);
  }

  /** Null while nothing is known of any server. */
  capabilities(): BackendCapabilities | null {
    const { replicas } = this.#options;
    const known = replicas.flatMap(({ serving, capabilities }) => (serving && capabilities ? [capabilities] : []));
    const now = known.length > 0 ? together(known) : this.#announced;
    if (!now) return null;
    this.#announced ??= now;
    const contextLength = Math.min(now.contextLength, this.#announced.contextLength);
    return { ...now, contextLength, maxInFlight: replicas.reduce((sum, replica) => sum + this.limitOf(replica), 0) };
  }

  get known(): boolean {
    return this.#announced !== null;
  }

  limitOf({ capabilities }: Replica): number {
    const { maxInFlight, expected } = this.#options;
    return maxInFlight ?? capabilities?.maxInFlight ?? expected?.maxInFlight ?? IN_FLIGHT;
  }

  /** Throws Invalid, in a sentence, when the server is another one than it was, or than the others are. */
  check(replica: Replica, { capabilities }: Found): void {
    for (const one of this.#options.replicas) if (one.capabilities) this.#names.add(one.capabilities.modelName);
    const before = this.#announced ?? replica.capabilities;
    const problem = disagreement({ url: replica.url, backend: this.#options.backend }, capabilities, {
      modelNames: this.#names,
      contextLength: before?.contextLength ?? 0,
      tokenIds: before?.tokenIds ?? false,
    });
    if (problem) throw new Invalid(problem);
  }

  letIn(replica: Replica, capabilities: BackendCapabilities): void {
    replica.capabilities = capabilities;
    this.#names.add(capabilities.modelName);
  }
}
