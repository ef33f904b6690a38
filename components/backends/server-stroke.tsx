const COLOURS = ['var(--accent)', 'var(--positive)', 'var(--negative)', 'var(--ok)', 'var(--warn)', 'var(--ink-2)'];

/** Of more servers a line each could not be told apart: their spread is drawn, and the line of one that was chosen. */
export const areMany = (servers: number): boolean => servers > COLOURS.length;

/** Of a server's line in every chart, by its place among the servers; of many only the chosen one has any. */
export const colourOf = (server: number): string => COLOURS[server % COLOURS.length] as string;

export const CHOSEN_COLOUR = 'var(--accent)';

/** A piece of that line, beside the server's name. */
export function ServerStroke({ colour }: { colour: string }) {
  return (
    <svg width="18" height="8" aria-hidden="true" className="shrink-0">
      <line x1="0" x2="18" y1="4" y2="4" strokeWidth="2" stroke={colour} />
    </svg>
  );
}
