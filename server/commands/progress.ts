/** Progress for a person at a terminal, on standard error. One line that moves, or a line a tenth elsewhere. */
import type { RunDetail, ScoreJobView } from '../core/views';

export interface ProgressLine {
  line: string;
  /** 0 to 1. */
  share: number;
}

export interface Progress {
  show(line: ProgressLine): void;
  /** Makes room for a line of another kind; the next `show` goes on below it. */
  clear(): void;
  end(): void;
}

const WIDTH = 28;

export function createProgress(out: NodeJS.WriteStream): Progress {
  let lastTenth = -1;
  let open = false;
  return {
    show({ line, share }) {
      if (out.isTTY) {
        out.write(`\r\x1b[2K${line}`);
        open = true;
      } else if (Math.floor(share * 10) > lastTenth) {
        lastTenth = Math.floor(share * 10);
        out.write(`${line}\n`);
      }
    },
    clear() {
      if (open) out.write('\r\x1b[2K');
      open = false;
    },
    end() {
      if (open) out.write('\n');
      open = false;
    },
  };
}

export function runProgress(run: Pick<RunDetail, 'counts' | 'taskCount' | 'groupSize' | 'meanReward'>): ProgressLine {
  const total = run.taskCount * run.groupSize;
  const { counts } = run;
  // As the run's page counts: what was dropped or stopped is no failure.
  const failed = counts.failed + counts.timed_out;
  const finished = counts.completed + counts.truncated + failed + counts.cancelled;
  const share = total === 0 ? 1 : finished / total;
  const reward = run.meanReward === null ? '' : ` · mean reward ${run.meanReward.toFixed(3)}`;
  const failures = failed > 0 ? ` · ${failed} failed` : '';
  const cancelled = counts.cancelled > 0 ? ` · ${counts.cancelled} cancelled` : '';
  return { line: `${bar(share)} ${finished}/${total} trajectories${reward}${failures}${cancelled}`, share };
}

export function scoreProgress({ done, total, alreadyScored, approximate }: ScoreJobView): ProgressLine {
  const share = total === 0 ? 1 : done / total;
  const passed = alreadyScored > 0 ? ` · ${alreadyScored} scored before` : '';
  const left = approximate > 0 ? ` · ${approximate} approximate, left out` : '';
  return { line: `${bar(share)} ${done}/${total} token sequences${passed}${left}`, share };
}

function bar(share: number): string {
  return '█'.repeat(Math.round(Math.min(1, share) * WIDTH)).padEnd(WIDTH, '░');
}
