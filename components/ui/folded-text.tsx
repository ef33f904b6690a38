'use client';
import { useTranslations } from 'next-intl';
import { useLayoutEffect, useRef, useState } from 'react';
import { classNames } from './class-names';
import { count } from './numbers';

/** Text of any length in a cell: three lines, and all of it at a press, with how much that is. */
export function FoldedText({ text, mono = false }: { text: string; mono?: boolean }) {
  const t = useTranslations('list');
  const [open, setOpen] = useState(false);
  const [cut, setCut] = useState(false);
  const shown = useRef<HTMLDivElement>(null);
  // What fits into three lines depends on the width, and on the text: only the browser knows whether something is hidden.
  useLayoutEffect(() => {
    const element = shown.current;
    if (!element || open) return;
    const look = () => setCut(element.scrollHeight > element.clientHeight + 1);
    look();
    const watch = new ResizeObserver(look);
    watch.observe(element);
    return () => watch.disconnect();
  });
  return (
    <div className="min-w-0">
      <div ref={shown} className={classNames('foreign-text', mono && 'font-mono text-sm', !open && 'line-clamp-3')}>
        {/* A browser lays out what is hidden too: only the head of a huge text is written while it is folded. */}
        {open || text.length <= 2_000 ? text : text.slice(0, 2_000)}
      </div>
      {cut ? (
        <button
          type="button"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          className="text-left text-sm text-ink-3 hover:text-ink hover:underline max-sm:py-1.5"
        >
          {open ? t('fold') : t('unfold', { characters: count(text.length) })}
        </button>
      ) : null}
    </div>
  );
}
