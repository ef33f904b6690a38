'use client';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRouter } from 'next/navigation';
import { useTranslations } from 'next-intl';
import { useEffect, useRef, useState } from 'react';
import { useMay } from '@/components/people/use-may';
import { useTRPC } from '@/components/trpc';
import { Button } from '@/components/ui/button';
import { useErrorSentence } from '@/components/ui/query-view';
import { Notice } from '@/components/ui/state';
import { offsetOf, placeOf, readProblems } from './text-position';

const LINE_HEIGHT = 18;

/** The YAML in a plain text field with line numbers; saving shows the server's problems, each a way to its place. */
export function SkillEditor({
  initial,
  onClose,
  onSaved,
}: {
  initial: string;
  onClose: () => void;
  onSaved?: () => void;
}) {
  const t = useTranslations('skill');
  const trpc = useTRPC();
  const router = useRouter();
  const queryClient = useQueryClient();
  const sentence = useErrorSentence();
  const maySave = useMay('operator');
  const [text, setText] = useState(initial);
  const [caret, setCaret] = useState(0);
  const field = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLDivElement>(null);
  const changed = text !== initial;
  useWarnBeforeLeaving(changed);

  const save = useMutation(
    trpc.skills.save.mutationOptions({
      onSuccess: async ({ name, created }) => {
        if (!created) return;
        await queryClient.invalidateQueries(trpc.skills.pathFilter());
        onSaved?.();
        onClose();
        router.push(`/skills/${encodeURIComponent(name)}`);
      },
    }),
  );
  const goTo = (line: number, column: number) => {
    const area = field.current;
    if (!area) return;
    const offset = offsetOf(text, line, column);
    area.focus();
    area.setSelectionRange(offset, offset);
    area.scrollTop = Math.max(0, (line - 6) * LINE_HEIGHT);
    setCaret(offset);
  };
  const unchanged = save.data?.created === false ? save.data : null;
  const problems = save.isError ? readProblems(sentence(save.error)) : [];
  const wrongLines = new Set(problems.map(({ line }) => line));
  const lineCount = text.split('\n').length;
  const place = placeOf(text, caret);
  return (
    <form
      className="border-b"
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate({ yaml: text });
      }}
    >
      <div className="flex h-[min(60dvh,40rem)] font-mono text-sm leading-[18px] has-[textarea:focus-visible]:outline-2 has-[textarea:focus-visible]:-outline-offset-2 has-[textarea:focus-visible]:outline-accent">
        <div
          ref={gutter}
          aria-hidden="true"
          className="w-12 shrink-0 overflow-hidden border-r border-line-soft bg-panel py-2 text-right text-ink-3 select-none"
        >
          {Array.from({ length: lineCount }, (_, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is its number
            <div key={index} className={wrongLines.has(index + 1) ? 'bg-bad pr-2 font-bold text-bg' : 'pr-2'}>
              {index + 1}
            </div>
          ))}
          <div className="h-8" />
        </div>
        <textarea
          ref={field}
          aria-label={t('yaml')}
          aria-invalid={problems.length > 0 || undefined}
          aria-describedby="skill-problems"
          wrap="off"
          spellCheck={false}
          autoCapitalize="off"
          autoCorrect="off"
          value={text}
          onChange={({ target }) => {
            setText(target.value);
            setCaret(target.selectionStart);
          }}
          onSelect={({ currentTarget }) => setCaret(currentTarget.selectionStart)}
          onScroll={({ currentTarget }) => {
            if (gutter.current) gutter.current.scrollTop = currentTarget.scrollTop;
          }}
          className="min-w-0 flex-1 resize-none bg-raised px-3 py-2 text-sm! leading-[18px] whitespace-pre focus-visible:outline-none"
        />
      </div>
      <div id="skill-problems" aria-live="polite">
        {unchanged ? <Notice>{t('unchanged', { version: unchanged.version })}</Notice> : null}
        {problems.map(({ text: sentenceText, line, column }) => (
          <Notice key={sentenceText} tone="bad">
            {line === null ? (
              sentenceText
            ) : (
              <button
                type="button"
                onClick={() => goTo(line, column ?? 1)}
                className="text-left underline decoration-line underline-offset-3 hover:decoration-ink"
              >
                {sentenceText}
              </button>
            )}
          </Notice>
        ))}
      </div>
      <div className="flex flex-wrap items-center gap-2 border-t border-line-soft px-4 py-2">
        <Button type="submit" kind="primary" busy={save.isPending} disabled={!maySave || text.trim() === ''}>
          {t('save')}
        </Button>
        <Button kind="quiet" onClick={onClose}>
          {changed ? t('discard') : t('stopEditing')}
        </Button>
        <p className="text-sm text-ink-3">{maySave ? t('saveHint') : t('notAllowed')}</p>
        <p className="ml-auto text-sm text-ink-3">{t('place', place)}</p>
      </div>
    </form>
  );
}

/** The browser asks before a tab with unsaved text closes. */
function useWarnBeforeLeaving(changed: boolean): void {
  useEffect(() => {
    if (!changed) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [changed]);
}
