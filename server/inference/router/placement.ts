/**
 * Which request goes to which replica, and when: pure bookkeeping, no time, no I/O. The requests of one key stay on one
 * replica, whose prefix cache holds what they share; all else goes to the least loaded. What no replica has room for
 * waits here, so that the queue inside each engine is short and full.
 */

import { RecentKeys } from '../recent-keys';
import { FairClock, FairQueue, goesBefore, type Stamped } from './fair-queue';

/** A replica, as far as placing is concerned. Counts are kept by `Placement`, the rest by whoever knows the replica. */
export class Place<Item extends PlacedItem = PlacedItem> {
  inFlight = 0;
  tokensInFlight = 0;
  /** Of those who wait for this one because their key is at home here. */
  waitingTokens = 0;
  readonly waiting = new FairQueue<Item>();
  usable = false;
  /** Its weights are the newest; those are preferred as long as they have room. */
  newest = true;
  maxInFlight = 64;
  maxTokens = Number.POSITIVE_INFINITY;
  /** Requests it takes now: `maxInFlight`, less after it refused some for being too many. */
  limit = 64;

  /** 1 = full; more when requests wait for this one. */
  get load(): number {
    const requests = (this.inFlight + this.waiting.size) / this.maxInFlight;
    return Math.max(requests, (this.tokensInFlight + this.waitingTokens) / this.maxTokens);
  }

  /** A request larger than the limit is alone there. */
  hasRoom(tokens: number): boolean {
    if (!this.usable || this.inFlight >= this.limit) return false;
    return this.inFlight === 0 || this.tokensInFlight + tokens <= this.maxTokens;
  }
}

export interface PlacedItem extends Stamped {
  /** Prompt and the most it may sample. */
  readonly tokens: number;
  /** Its key has a home: one replica. */
  readonly keepsTogether: boolean;
  /** Where it failed last: only when no other is usable it goes there again. */
  avoid: object | null;
}

export interface PlacementOptions {
  /** A key moves when its home's load is more than this above the least loaded one's (1 = a replica's limit). Default 1/8. */
  margin?: number;
  /** Keys whose home is remembered. Default 50,000. */
  keys?: number;
}

export class Placement<Item extends PlacedItem> {
  readonly places: readonly Place<Item>[];
  readonly #margin: number;
  readonly #homes: RecentKeys<Place<Item>>;
  readonly #clock = new FairClock();
  readonly #unplaced = new FairQueue<Item>();

  constructor(places: readonly Place<Item>[], { margin = 1 / 8, keys = 50_000 }: PlacementOptions = {}) {
    this.places = places;
    this.#margin = margin;
    this.#homes = new RecentKeys(keys);
  }

  get waiting(): number {
    return this.places.reduce((sum, place) => sum + place.waiting.size, this.#unplaced.size);
  }

  homeOf(key: string): Place<Item> | null {
    return this.#homes.get(key);
  }

  /** It waits from now on; `next` says when its turn has come. */
  add(item: Item): void {
    this.#clock.stamp(item);
    this.#enqueue(item);
  }

  /** After a failure: it waits once more, where it stood, and its key has no home any more. */
  addAgain(item: Item, failedAt: Place<Item>): void {
    item.avoid = failedAt;
    if (this.#homes.get(item.key) === failedAt) this.#homes.delete(item.key);
    this.#clock.again(item);
    this.#enqueue(item);
  }

  /** Stops waiting. False when it did not wait. */
  remove(item: Item): boolean {
    const place = this.places.find((one) => one.waiting.remove(item));
    if (place) place.waitingTokens -= item.tokens;
    else if (!this.#unplaced.remove(item)) return false;
    this.#clock.left(item, false);
    return true;
  }

  /** Its answer is there, or it was given up: the place is free. */
  leave(item: Item, place: Place<Item>): void {
    place.inFlight -= 1;
    place.tokensInFlight -= item.tokens;
  }

  /** To be called when `usable` or `newest` of a place changed: who waits for one that cannot serve may go elsewhere. */
  placesChanged(): void {
    for (const place of this.places)
      if (!place.usable) for (const item of [...place.waiting]) this.#unbind(item, place);
  }

  /** The next one that can be sent, and where; it counts as in flight there. Null when nobody waits or nothing has room. */
  next(): { item: Item; place: Place<Item> } | null {
    if (!this.places.some((place) => place.usable && place.inFlight < place.limit)) return null;
    const chosen = this.#first() ?? this.#relieved();
    if (!chosen) return null;
    const { item, place } = chosen;
    place.inFlight += 1;
    place.tokensInFlight += item.tokens;
    if (item.keepsTogether) this.#homes.set(item.key, place);
    this.#clock.left(item, true);
    return chosen;
  }

  /** The one whose turn it is. */
  #first(): { item: Item; place: Place<Item> } | null {
    const free = this.#firstUnplaced();
    let best: Place<Item> | null = null;
    for (const place of this.places) {
      const item = place.usable ? place.waiting.peek() : null;
      if (!item) continue;
      // Where a large one waits for room, nobody who came later takes it away.
      if (free && free.target === place && goesBefore(free.item, item)) continue;
      if (place.hasRoom(item.tokens) && (!best || goesBefore(item, best.waiting.peek() as Item))) best = place;
    }
    const bound = best?.waiting.peek() ?? null;
    if (free?.target.hasRoom(free.item.tokens) && (!bound || goesBefore(free.item, bound))) {
      this.#unplaced.take();
      return { item: free.item, place: free.target };
    }
    if (!best || !bound) return null;
    this.#takeBound(best);
    return { item: bound, place: best };
  }

  /** The head of those without a place, and the one it goes to or waits for. */
  #firstUnplaced(): { item: Item; target: Place<Item> } | null {
    for (;;) {
      const item = this.#unplaced.peek();
      if (!item) return null;
      const home = this.#homeToWaitFor(item);
      if (!home) {
        const target = this.#leastLoaded(item);
        return target && { item, target };
      }
      // Another request of its key has found a home meanwhile.
      this.#unplaced.take();
      this.#bind(item, home);
    }
  }

  /** Someone who waits at a replica so much fuller than another that the key moves there. */
  #relieved(): { item: Item; place: Place<Item> } | null {
    for (const from of this.places) {
      const item = from.waiting.peek();
      if (!item) continue;
      const to = this.#leastLoaded(item);
      if (!to || to === from || !to.hasRoom(item.tokens) || this.#stays(from, to)) continue;
      this.#takeBound(from);
      return { item, place: to };
    }
    return null;
  }

  #enqueue(item: Item): void {
    const home = this.#homeToWaitFor(item);
    if (home) this.#bind(item, home);
    else this.#unplaced.put(item);
  }

  #homeToWaitFor(item: Item): Place<Item> | null {
    const home = item.keepsTogether ? this.#homes.get(item.key) : null;
    if (!home?.usable || item.avoid === home) return null;
    const least = this.#leastLoaded(item);
    return !least || least === home || this.#stays(home, least) ? home : null;
  }

  #stays(home: Place<Item>, other: Place<Item>): boolean {
    if (other.newest !== home.newest) return home.newest;
    return home.load - other.load <= this.#margin;
  }

  /** Newest weights with room, then any with room, then the one to wait for. */
  #leastLoaded(item: Item): Place<Item> | null {
    let best: Place<Item> | null = null;
    const elsewhere = this.places.some((place) => place.usable && place !== item.avoid);
    for (const place of this.places) {
      if (!place.usable || (elsewhere && place === item.avoid)) continue;
      if (!best || isBetter(place, best, item.tokens)) best = place;
    }
    return best;
  }

  #bind(item: Item, place: Place<Item>): void {
    place.waiting.put(item);
    place.waitingTokens += item.tokens;
  }

  #unbind(item: Item, place: Place<Item>): void {
    place.waiting.remove(item);
    place.waitingTokens -= item.tokens;
    this.#unplaced.put(item);
  }

  #takeBound(place: Place<Item>): void {
    const item = place.waiting.take();
    if (item) place.waitingTokens -= item.tokens;
  }
}

function isBetter(one: Place, other: Place, tokens: number): boolean {
  const [room, otherRoom] = [one.hasRoom(tokens), other.hasRoom(tokens)];
  if (room !== otherRoom) return room;
  if (one.newest !== other.newest) return one.newest;
  if (one.load !== other.load) return one.load < other.load;
  return one.tokensInFlight < other.tokensInFlight;
}
