'use client';
import { useTranslations } from 'next-intl';
import { useState } from 'react';
import { classNames } from './class-names';
import { count } from './numbers';

const SHORT = 280;

/** Text of any length in a cell: three lines, and all of it at a press, with how much that is. */
export function FoldedText({ text, mono = false }: { text: string; mono?: boolean }) {
  const t = useTranslations('list');
  const [open, setOpen] = useState(false);
  const long = text.length > SHORT || text.split('\n', 4).length > 3;
  return (
    <div className="min-w-0">
      <div className={classNames('foreign-text', mono && 'font-mono text-sm', !open && 'line-clamp-3')}>
        {/* A browser lays out what is hidden too: only the head of a huge text is written while it is folded. */}
        {open || text.length <= 2_000 ? text : text.slice(0, 2_000)}
      </div>
      {long ? (
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
