import { classNames } from './class-names';

/** One line of a path, a model's name or a label of weights: cut at its beginning, since its end tells it from others. */
export function EndLine({ text, title = text, className }: { text: string; title?: string; className?: string }) {
  return (
    <span className={classNames('foreign-line foreign-end', className ?? 'block')} title={title}>
      <bdi>{text}</bdi>
    </span>
  );
}
