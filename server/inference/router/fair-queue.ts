/**
 * Order of those who wait: first come, first served, but of one key only one at a time is ahead of the others (start-time
 * fair queueing), so that one asker with thousands of requests delays nobody by more than one. Several queues may share
 * one `FairClock`; the stamps of all of them compare.
 */
export interface Stamped {
  readonly key: string;
  /** Given by `FairClock.stamp`; smaller goes first, equal ones by `arrival`. */
  stamp: number;
  arrival: number;
}

export class FairClock {
  #now = 0;
  #arrivals = 0;
  /** Of keys with something waiting, or with a turn that lies ahead of the others'. */
  readonly #keys = new Map<string, { last: number; waiting: number }>();

  stamp(item: Stamped): void {
    const known = this.#keys.get(item.key);
    item.stamp = known ? Math.max(this.#now, known.last + 1) : this.#now;
    item.arrival = this.#arrivals++;
    this.#waits(item, known);
  }

  /** The item waits once more, where it stood. */
  again(item: Stamped): void {
    this.#waits(item, this.#keys.get(item.key));
  }

  /** The item stopped waiting. `served`: its turn came, as against its having given up. */
  left(item: Stamped, served: boolean): void {
    if (served) this.#now = Math.max(this.#now, item.stamp);
    const known = this.#keys.get(item.key);
    if (known) known.waiting -= 1;
    // As many are looked at as can have been added, and one more.
    for (let k = 0; k < 2; k++) this.#forgetOldest();
  }

  #waits(item: Stamped, known: { last: number; waiting: number } | undefined): void {
    if (!known) this.#keys.set(item.key, { last: item.stamp, waiting: 1 });
    else {
      known.last = Math.max(known.last, item.stamp);
      known.waiting += 1;
    }
  }

  #forgetOldest(): void {
    const oldest = this.#keys.entries().next();
    if (oldest.done) return;
    const [key, known] = oldest.value;
    this.#keys.delete(key);
    if (known.waiting > 0 || known.last >= this.#now) this.#keys.set(key, known);
  }
}

export function goesBefore(a: Stamped, b: Stamped): boolean {
  return a.stamp !== b.stamp ? a.stamp < b.stamp : a.arrival < b.arrival;
}

/** A binary heap of stamped items; removal from the middle marks, and the marked are swept when they are the most. */
export class FairQueue<T extends Stamped> {
  readonly #heap: T[] = [];
  readonly #live = new Set<T>();

  get size(): number {
    return this.#live.size;
  }

  put(item: T): void {
    this.#live.add(item);
    this.#heap.push(item);
    this.#rise(this.#heap.length - 1);
  }

  peek(): T | null {
    for (;;) {
      const first = this.#heap[0];
      if (!first) return null;
      if (this.#live.has(first)) return first;
      this.#removeFirst();
    }
  }

  take(): T | null {
    const first = this.peek();
    if (first) {
      this.#live.delete(first);
      this.#removeFirst();
    }
    return first;
  }

  /** False when it is not here. */
  remove(item: T): boolean {
    if (!this.#live.delete(item)) return false;
    if (this.#heap.length > 32 && this.#heap.length > 2 * this.#live.size) this.#sweep();
    return true;
  }

  *[Symbol.iterator](): IterableIterator<T> {
    yield* this.#live;
  }

  #sweep(): void {
    const kept = [...this.#live];
    this.#heap.length = 0;
    for (const item of kept) {
      this.#heap.push(item);
      this.#rise(this.#heap.length - 1);
    }
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    if (!last || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink(0);
  }

  #rise(from: number): void {
    const heap = this.#heap;
    let at = from;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!goesBefore(heap[at] as T, heap[up] as T)) return;
      [heap[at], heap[up]] = [heap[up] as T, heap[at] as T];
      at = up;
    }
  }

  #sink(from: number): void {
    const heap = this.#heap;
    let at = from;
    for (;;) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < heap.length && goesBefore(heap[child] as T, heap[least] as T)) least = child;
      if (least === at) return;
      [heap[at], heap[least]] = [heap[least] as T, heap[at] as T];
      at = least;
    }
  }
}
