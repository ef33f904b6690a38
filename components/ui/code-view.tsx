import { ScrollFrame } from './scroll-frame';

/** Text as it is, with line numbers that are not copied with it. */
export function CodeView({ text, label }: { text: string; label: string }) {
  const lines = text.replace(/\n$/, '').split('\n');
  return (
    <ScrollFrame label={label} className="overflow-x-auto py-2 font-mono text-sm">
      <ol>
        {lines.map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line is its number
          <li key={index} className="grid grid-cols-[3.5rem_minmax(0,1fr)] hover:bg-panel">
            <span
              aria-hidden="true"
              data-line={index + 1}
              className="pr-4 text-right text-ink-3 select-none before:content-[attr(data-line)]"
            />
            <span className="foreign-text pr-4">{line === '' ? '\n' : line}</span>
          </li>
        ))}
      </ol>
    </ScrollFrame>
  );
}
