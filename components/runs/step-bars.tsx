import { decimal } from '@/components/ui/numbers';

const SHOWN = 48;

/**
 * The rewards of a trajectory's steps as bars, from 0 to 1 (or to the largest, where one is larger); once the group has
 * ended a bar above its group is orange, one below is blue. The numbers are its name for screen readers and on hover.
 */
export function StepBars({
  rewards,
  advantages,
}: {
  rewards: readonly number[];
  advantages: readonly number[] | null;
}) {
  if (rewards.length === 0) return null;
  const top = Math.max(1, ...rewards.map(Math.abs));
  const words = rewards.map((reward) => decimal(reward)).join(' · ');
  return (
    <span role="img" aria-label={words} title={words} className="flex h-4 w-fit items-end gap-px">
      {rewards.slice(0, SHOWN).map((reward, step) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: a step is its number
          key={step}
          className={`w-1.5 ${barClass(advantages?.[step])}`}
          style={{ height: `${Math.max(8, (100 * Math.max(0, reward)) / top)}%` }}
        />
      ))}
      {rewards.length > SHOWN ? <span className="text-xs text-ink-3">+{rewards.length - SHOWN}</span> : null}
    </span>
  );
}

function barClass(advantage: number | undefined): string {
  if (advantage === undefined || Math.abs(advantage) < 0.005) return 'bg-ink-3';
  return advantage > 0 ? 'bg-positive' : 'bg-negative';
}
