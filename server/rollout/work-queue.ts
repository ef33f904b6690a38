/** First in, first out, between the two sides of the engine. `take` waits; after `close` it returns null. */
export class WorkQueue<T> {
  private readonly items: T[] = [];
  private head = 0;
  private readonly takers: ((item: T | null) => void)[] = [];
  private closed = false;

  put(item: T): void {
    const taker = this.takers.shift();
    if (taker) taker(item);
    else this.items.push(item);
  }

  take(): Promise<T | null> {
    const item = this.takeNow();
    if (item !== undefined) return Promise.resolve(item);
    if (this.closed) return Promise.resolve(null);
    return new Promise((resolve) => this.takers.push(resolve));
  }

  /** What is there now, without waiting. */
  takeNow(): T | undefined {
    if (this.head >= this.items.length) return undefined;
    const item = this.items[this.head++];
    if (this.head > 1024 && this.head * 2 > this.items.length) {
      this.items.splice(0, this.head);
      this.head = 0;
    }
    return item;
  }

  get waiting(): number {
    return this.items.length - this.head;
  }

  close(): void {
    this.closed = true;
    for (const taker of this.takers.splice(0)) taker(null);
  }
}
