/** What can be made to go wrong with a twin, while it runs: set a field, and the next request meets it. */

export interface TwinFaults {
  /** Paths that the faults of the connection (down to `cutBody`) apply to; null = all. */
  routes: string[] | null;
  /** So many next requests are answered with 503; counts down. */
  unavailableNext: number;
  /** Never answers; the connection stays open. */
  hang: boolean;
  /** Closes the connection without an answer. */
  drop: boolean;
  /** Answers 200 with a page of HTML, as a wrong address or a proxy does. */
  html: boolean;
  /** Announces the whole body, sends half of it and closes the connection. */
  cutBody: boolean;
  /** Ends a stream after its first chunk, without the end marker. */
  cutStream: boolean;
  /** The shape of error bodies; `own` is what the server really does on that route. */
  errorShape: 'own' | 'nested' | 'flat' | 'string' | 'detail';
  /** Replies lack the ids of the sampled tokens. */
  missingIds: boolean;
  /** Reported for the second sampled token instead of its log-probability; undefined = the true number. */
  logprob: number | null | undefined;
  /** Status 200, and text that the constraint does not allow. */
  ignoreConstraints: boolean;
  /** Tokens take at least this long each. */
  msPerToken: number;
  /** The cache of prompts stays after a change of weights, and a flush says that it is empty. */
  staleCache: boolean;
  /** A token is put before every prompt. */
  addBos: boolean;
}

export function noFaults(): TwinFaults {
  return {
    routes: null,
    unavailableNext: 0,
    hang: false,
    drop: false,
    html: false,
    cutBody: false,
    cutStream: false,
    errorShape: 'own',
    missingIds: false,
    logprob: undefined,
    ignoreConstraints: false,
    msPerToken: 0,
    staleCache: false,
    addBos: false,
  };
}
