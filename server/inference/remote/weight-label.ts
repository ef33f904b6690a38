/** Reads the label of a server's weights for many requests at once. */

export class WeightLabel {
  readonly #read: () => Promise<string>;
  #running: Promise<string> | null = null;
  #next: Promise<string> | null = null;

  constructor(read: () => Promise<string>) {
    this.#read = read;
  }

  /** A label read after this call: one that is being read already may be from before, so it is not used. */
  fresh(): Promise<string> {
    if (this.#running === null) return this.#start();
    const over = this.#running.then(
      () => {},
      () => {},
    );
    this.#next ??= over.then(() => {
      this.#next = null;
      return this.#start();
    });
    return this.#next;
  }

  #start(): Promise<string> {
    const running = this.#read().finally(() => {
      if (this.#running === running) this.#running = null;
    });
    this.#running = running;
    return running;
  }
}
