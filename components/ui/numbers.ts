/** How numbers are written everywhere: the same digits in every language, a true minus sign, a dash for what is absent. */
export const ABSENT = '–';

/** `decimal(0.538)` → `0.54`; `decimal(-1.2, 1)` → `−1.2`; never `−0.00`. */
export function decimal(value: number | null | undefined, digits = 2): string {
  if (value === null || value === undefined || Number.isNaN(value)) return ABSENT;
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** A number that may lie above or below: `+1.31`, `−0.40`, `0.00`. */
export function signed(value: number | null | undefined, digits = 2): string {
  const text = decimal(value, digits);
  return typeof value === 'number' && value > 0 && Number(value.toFixed(digits)) !== 0 ? `+${text}` : text;
}

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
/** `count(48123)` → `48,123`. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? ABSENT : grouped.format(value);
}

/** A share from 0 to 1: `percent(0.614)` → `61%`. 0% and 100% are written only where they are exact. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || Number.isNaN(share)) return ABSENT;
  const rounded = Math.round(share * 100);
  if (rounded === 100 && share < 1) return '>99%';
  if (rounded === 0 && share > 0) return '<1%';
  return `${rounded}%`;
}

/** Milliseconds as a short span: `840 ms`, `4.2 s`, `3:07`, `1:02:09`. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return ABSENT;
  const span = Math.max(0, ms);
  if (span < 1000) return `${Math.round(span)} ms`;
  if (span < 59_950) return `${(span / 1000).toFixed(1)} s`;
  const seconds = Math.round(span / 1000);
  const two = (n: number) => String(n).padStart(2, '0');
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}
