/**
 * Names of servers to addresses. The system's resolver works on the few threads that files and everything else share, and
 * a name that does not resolve holds one for many seconds: only so many are asked for at once, and names that failed
 * keep a thread less busy than those that did not, so that dead servers do not take the live ones down with them.
 */
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { RecentKeys } from '../recent-keys';

type Answer = [error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number];
type Lookup = (hostname: string, options: LookupOptions, answer: (...answer: Answer) => void) => void;

/** Of the four threads that there are by default. */
const AT_ONCE = 2;
const FAILED_AT_ONCE = 1;
/** Names of which is remembered that they failed. */
const REMEMBERED = 1000;

interface Question {
  key: string;
  hostname: string;
  options: LookupOptions;
  /** All who asked the same meanwhile. */
  answers: ((...answer: Answer) => void)[];
}

export class NameLookup {
  readonly #resolve: Lookup;
  readonly #open = new Map<string, Question>();
  readonly #waiting: Question[] = [];
  readonly #running = new Set<Question>();
  readonly #failed = new RecentKeys<true>(REMEMBERED);

  /** @param resolve asks the system; only given in tests */
  constructor(resolve: Lookup = lookup) {
    this.#resolve = resolve;
  }

  /** As node:net wants it. */
  readonly lookup: Lookup = (hostname, options, answer) => {
    const key = JSON.stringify([hostname, options.family, options.hints, options.all, options.order]);
    const same = this.#open.get(key);
    if (same) {
      same.answers.push(answer);
      return;
    }
    const question = { key, hostname, options, answers: [answer] };
    this.#open.set(key, question);
    this.#waiting.push(question);
    this.#next();
  };

  #next(): void {
    while (this.#running.size < AT_ONCE) {
      const failed = [...this.#running].filter(({ hostname }) => this.#failed.get(hostname)).length;
      const next =
        this.#waiting.find(({ hostname }) => !this.#failed.get(hostname)) ??
        (failed < FAILED_AT_ONCE ? this.#waiting[0] : undefined);
      if (!next) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#running.add(next);
      this.#resolve(next.hostname, next.options, (...answer) => this.#answered(next, answer));
    }
  }

  #answered(question: Question, answer: Answer): void {
    this.#running.delete(question);
    this.#open.delete(question.key);
    if (answer[0]) this.#failed.set(question.hostname, true);
    else this.#failed.delete(question.hostname);
    for (const one of question.answers) one(...answer);
    this.#next();
  }
}

/** One for the process, as its threads are. */
export const names = new NameLookup();
