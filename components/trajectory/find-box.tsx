'use client';
import { useTranslations } from 'next-intl';
import { type KeyboardEvent, useEffect, useRef } from 'react';
import { count } from '@/components/ui/numbers';

/** The view's own find: the browser's cannot see what is painted, nor what is off screen. */
export function FindBox({
  text,
  total,
  current,
  onText,
  onStep,
  onClose,
}: {
  text: string;
  total: number;
  /** From 0; −1 before the first jump. */
  current: number;
  onText: (text: string) => void;
  onStep: (direction: 1 | -1) => void;
  onClose: () => void;
}) {
  const t = useTranslations('trajectory');
  const input = useRef<HTMLInputElement | null>(null);
  useEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === 'Enter') {
      event.preventDefault();
      onStep(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      onClose();
    } else if (event.key === 'f' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      input.current?.select();
    }
    event.stopPropagation();
  }

  const button = 'rounded px-1.5 py-0.5 text-ink-2 hover:bg-panel disabled:opacity-40 max-sm:min-h-9 max-sm:min-w-9';
  return (
    <search className="absolute top-2 right-7 z-10 flex max-w-[calc(100%-2.5rem)] items-center gap-1 rounded border border-line bg-raised px-2 py-1 text-sm shadow-raised">
      <input
        ref={input}
        type="search"
        value={text}
        onChange={(event) => onText(event.target.value)}
        onKeyDown={onKeyDown}
        placeholder={t('find.placeholder')}
        aria-label={t('find.label')}
        className="w-44 min-w-0 bg-transparent font-mono outline-none [&::-webkit-search-cancel-button]:hidden"
        spellCheck={false}
        autoComplete="off"
      />
      <span className="min-w-14 text-right whitespace-nowrap text-ink-2" role="status">
        {text === ''
          ? ''
          : total === 0
            ? t('find.none')
            : t('find.count', { current: current + 1, total: count(total) })}
      </span>
      <button
        type="button"
        className={button}
        disabled={total === 0}
        aria-label={t('find.previous')}
        onClick={() => onStep(-1)}
      >
        ↑
      </button>
      <button
        type="button"
        className={button}
        disabled={total === 0}
        aria-label={t('find.next')}
        onClick={() => onStep(1)}
      >
        ↓
      </button>
      <button type="button" className={button} aria-label={t('find.close')} onClick={onClose}>
        ×
      </button>
    </search>
  );
}
