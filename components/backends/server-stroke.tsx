const COLOURS = ['var(--accent)', 'var(--positive)', 'var(--negative)', 'var(--ok)', 'var(--warn)', 'var(--ink-2)'];
/** Servers beyond the colours are told apart by dashes as well. */
const DASHES = ['', '4 2', '1 2', '6 2 1 2'];

/** How the line of a server looks in every chart, by its place among the servers. */
export function strokeOf(server: number): { stroke: string; strokeDasharray?: string } {
  const dash = DASHES[Math.floor(server / COLOURS.length) % DASHES.length];
  return { stroke: COLOURS[server % COLOURS.length] as string, ...(dash ? { strokeDasharray: dash } : {}) };
}

/** A piece of that line, beside the server's name. */
export function ServerStroke({ server }: { server: number }) {
  return (
    <svg width="18" height="8" aria-hidden="true" className="shrink-0">
      <line x1="0" x2="18" y1="4" y2="4" strokeWidth="2" {...strokeOf(server)} />
    </svg>
  );
}
