/**
 * "The log of run X grew", told to everyone in this process who follows it. It carries no data: a follower reads the
 * log itself from its own cursor, so a slow one costs one flag and never a growing queue.
 */
export interface RunLogBus {
  grew(runId: string): void;
  /** Calls `wake` after every growth until the returned function is called. */
  subscribe(runId: string, wake: () => void): () => void;
}

export function createRunLogBus(): RunLogBus & { followers(): number } {
  const followers = new Map<string, Set<() => void>>();
  return {
    grew(runId) {
      for (const wake of followers.get(runId) ?? []) wake();
    },
    subscribe(runId, wake) {
      const ofRun = followers.get(runId) ?? new Set();
      followers.set(runId, ofRun.add(wake));
      return () => {
        ofRun.delete(wake);
        if (ofRun.size === 0 && followers.get(runId) === ofRun) followers.delete(runId);
      };
    },
    followers: () => [...followers.values()].reduce((sum, ofRun) => sum + ofRun.size, 0),
  };
}
