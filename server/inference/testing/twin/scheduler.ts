/**
 * Which request runs and which waits: a fixed number of slots, a queue in the order of arrival, pausing in the three
 * ways of SGLang, and stopping by name.
 */

export class Ticket {
  slot = -1;
  /** Why it must end; null while it may go on. */
  stopped: string | null = null;
  readonly #wake = new Set<() => void>();

  constructor(readonly id: string) {}

  stop(reason: string): void {
    this.stopped ??= reason;
    for (const wake of this.#wake) wake();
  }

  /** Settles after `ms`, or at once when it must end. */
  async sleep(ms: number): Promise<void> {
    if (this.stopped !== null) return;
    await new Promise<void>((settle) => {
      const done = () => {
        clearTimeout(timer);
        this.#wake.delete(done);
        settle();
      };
      const timer = setTimeout(done, ms);
      this.#wake.add(done);
    });
  }
}

export type PauseMode = 'abort' | 'retract' | 'in_place';

export class Scheduler {
  readonly slots: number;
  #releasedMs = 0;
  #most = 0;
  #paused: PauseMode | null = null;
  #held = 0;
  /** What had come before the last `exclusive`. */
  #allowed = new Set<Ticket>();
  readonly #running = new Map<Ticket, number>();
  #waiting: { ticket: Ticket; admit: () => void }[] = [];
  #watchers: (() => void)[] = [];

  constructor(slots: number) {
    this.slots = slots;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Milliseconds that slots were taken, all slots together, up to now. */
  get busyMs(): number {
    const now = performance.now();
    let busy = this.#releasedMs;
    for (const since of this.#running.values()) busy += now - since;
    return busy;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get mostRunning(): number {
    return this.#most;
  }

  get paused(): PauseMode | null {
    return this.#paused;
  }

  /** Settles when the ticket has a slot, or must end (then it has none). */
  async admit(ticket: Ticket): Promise<void> {
    await new Promise<void>((admit) => {
      this.#waiting.push({ ticket, admit });
      this.#turn();
    });
  }

  release(ticket: Ticket): void {
    const since = this.#running.get(ticket);
    if (since === undefined) return;
    this.#releasedMs += performance.now() - since;
    this.#running.delete(ticket);
    ticket.slot = -1;
    this.#turn();
  }

  /** Between two tokens: waits while paused. True when the slot was given up in between and the cache is gone. */
  async gate(ticket: Ticket): Promise<boolean> {
    if (this.#paused === 'retract' && ticket.stopped === null) {
      this.release(ticket);
      await this.admit(ticket);
      return true;
    }
    while (this.#paused === 'in_place' && ticket.stopped === null) await this.#change();
    return false;
  }

  /** Settles when the pause holds: with `abort`, when nothing runs any more. */
  async pause(mode: PauseMode): Promise<void> {
    this.#paused = mode;
    this.#turn();
    if (mode !== 'abort') return;
    this.stop(() => true, 'Abort in pause_generation.');
    while (this.running > 0) await this.#change();
  }

  resume(): void {
    this.#paused = null;
    this.#turn();
  }

  /** Lets what has come end, holds what comes now, works, and goes on. */
  async exclusive<T>(work: () => Promise<T>): Promise<T> {
    if (this.#paused !== null) return work();
    const before = new Set([...this.#running.keys(), ...this.#waiting.map(({ ticket }) => ticket)]);
    this.#allowed = before;
    this.#held++;
    try {
      while ([...before].some((ticket) => this.#running.has(ticket) || this.#waits(ticket))) await this.#change();
      return await work();
    } finally {
      this.#held--;
      this.#turn();
    }
  }

  /** Stops what runs or waits. Returns how many. */
  stop(which: (ticket: Ticket) => boolean, reason: string): number {
    const tickets = [...this.#running.keys(), ...this.#waiting.map(({ ticket }) => ticket)].filter(which);
    for (const ticket of tickets) ticket.stop(reason);
    this.#turn();
    return tickets.length;
  }

  #waits(ticket: Ticket): boolean {
    return this.#waiting.some((waiting) => waiting.ticket === ticket);
  }

  #turn(): void {
    const ended = this.#waiting.filter(({ ticket }) => ticket.stopped !== null);
    this.#waiting = this.#waiting.filter(({ ticket }) => ticket.stopped === null);
    for (const { admit } of ended) admit();
    for (;;) {
      if (this.#paused !== null || this.#running.size >= this.slots) break;
      const at = this.#waiting.findIndex(({ ticket }) => this.#held === 0 || this.#allowed.has(ticket));
      const [next] = at < 0 ? [] : this.#waiting.splice(at, 1);
      if (!next) break;
      const taken = new Set([...this.#running.keys()].map(({ slot }) => slot));
      let slot = 0;
      while (taken.has(slot)) slot++;
      next.ticket.slot = slot;
      this.#running.set(next.ticket, performance.now());
      this.#most = Math.max(this.#most, this.#running.size);
      next.admit();
    }
    for (const watcher of this.#watchers.splice(0)) watcher();
  }

  #change(): Promise<void> {
    return new Promise((settle) => this.#watchers.push(settle));
  }
}
