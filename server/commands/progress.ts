/** Progress of a run for a person at a terminal, on standard error. One line that moves, or a line a tenth elsewhere. */
import type { RunDetail } from '../core/views';

export interface Progress {
  show(run: RunDetail): void;
  end(): void;
}

const WIDTH = 28;

export function createProgress(out: NodeJS.WriteStream): Progress {
  let lastTenth = -1;
  let open = false;
  return {
    show(run) {
      const { line, share } = progressLine(run);
      if (out.isTTY) {
        out.write(`\r\x1b[2K${line}`);
        open = true;
      } else if (Math.floor(share * 10) > lastTenth) {
        lastTenth = Math.floor(share * 10);
        out.write(`${line}\n`);
      }
    },
    end() {
      if (open) out.write('\n');
      open = false;
    },
  };
}

export function progressLine(run: Pick<RunDetail, 'counts' | 'taskCount' | 'groupSize' | 'meanReward'>): {
  line: string;
  share: number;
} {
  const total = run.taskCount * run.groupSize;
  const { counts } = run;
  const failed = counts.failed + counts.timed_out + counts.cancelled;
  const finished = counts.completed + counts.truncated + failed;
  const share = total === 0 ? 1 : finished / total;
  const bar = '█'.repeat(Math.round(share * WIDTH)).padEnd(WIDTH, '░');
  const reward = run.meanReward === null ? '' : ` · mean reward ${run.meanReward.toFixed(3)}`;
  const failures = failed > 0 ? ` · ${failed} failed` : '';
  return { line: `${bar} ${finished}/${total} trajectories${reward}${failures}`, share };
}
