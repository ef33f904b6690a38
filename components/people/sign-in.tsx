'use client';
import { useSearchParams } from 'next/navigation';
import { useTranslations } from 'next-intl';
import { useCallback, useEffect, useRef, useState } from 'react';
import { safeNextPath } from '@/components/server-errors';
import { Button } from '@/components/ui/button';
import { Field, TextInput } from '@/components/ui/field';
import { ErrorState } from '@/components/ui/state';

type State = { is: 'asking' } | { is: 'sending' } | { is: 'refused'; message: string } | { is: 'unreachable' };

/** One POST a token, even where effects run twice. */
const sent = new Set<string>();

/**
 * Turns the one-time token of the address into a session. A token in the address is sent once by itself; it leaves
 * the address at the same moment, so that it stays in no history. Without one, a link or token can be pasted.
 */
export function SignIn() {
  const t = useTranslations('signIn');
  const search = useSearchParams();
  const [state, setState] = useState<State>(() => (search.get('token') ? { is: 'sending' } : { is: 'asking' }));
  const [pasted, setPasted] = useState('');
  const next = useRef(safeNextPath(search.get('next')));
  const token = useRef(search.get('token') ?? '');

  const send = useCallback(
    async (secret: string) => {
      setState({ is: 'sending' });
      try {
        const answer = await fetch('/api/sign-in', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ token: secret }),
        });
        if (answer.ok) {
          window.location.replace(next.current);
          return;
        }
        setState({
          is: 'refused',
          message: (await readSentence(answer)) ?? t('refusedWithout', { status: answer.status }),
        });
      } catch {
        setState({ is: 'unreachable' });
      }
    },
    [t],
  );

  useEffect(() => {
    const secret = token.current;
    if (secret === '' || sent.has(secret)) return;
    sent.add(secret);
    const query = next.current === '/' ? '' : `?next=${encodeURIComponent(next.current)}`;
    window.history.replaceState(null, '', `/sign-in${query}`);
    void send(secret);
  }, [send]);

  return (
    <div className="flex min-h-dvh items-center justify-center p-4">
      <div className="w-full max-w-96">
        <h1 className="mb-1 text-xl font-bold">{t('title')}</h1>
        {state.is === 'sending' ? (
          <p role="status" className="pulse-soft text-ink-2">
            {t('sending')}
          </p>
        ) : (
          <>
            <p className="mb-4 text-ink-2">{t('how')}</p>
            {state.is === 'refused' ? (
              <ErrorState className="mb-4 bg-panel" title={t('refused')} message={state.message} />
            ) : null}
            {state.is === 'unreachable' ? (
              <ErrorState
                className="mb-4 bg-panel"
                title={t('unreachable')}
                message={t('unreachableHint')}
                action={token.current ? <Button onClick={() => send(token.current)}>{t('again')}</Button> : null}
              />
            ) : null}
            <form
              className="flex flex-col gap-3"
              onSubmit={(event) => {
                event.preventDefault();
                token.current = tokenOf(pasted);
                if (token.current) void send(token.current);
              }}
            >
              <Field label={t('paste')}>
                {(wiring) => (
                  <TextInput {...wiring} value={pasted} onChange={({ target }) => setPasted(target.value)} />
                )}
              </Field>
              <Button type="submit" kind="primary" disabled={tokenOf(pasted) === ''} className="self-start">
                {t('enter')}
              </Button>
            </form>
          </>
        )}
      </div>
    </div>
  );
}

/** A pasted link's token, or what was pasted itself. */
function tokenOf(pasted: string): string {
  const text = pasted.trim();
  if (!URL.canParse(text)) return text;
  return new URL(text).searchParams.get('token') ?? '';
}

/** The server's sentence: `{ message }` or `{ error: { message } }`; null where the answer holds none. */
async function readSentence(answer: Response): Promise<string | null> {
  const body: unknown = await answer.json().catch(() => null);
  if (typeof body !== 'object' || body === null) return null;
  const holder: unknown = 'error' in body ? body.error : body;
  if (typeof holder === 'string') return holder;
  if (typeof holder === 'object' && holder !== null && 'message' in holder && typeof holder.message === 'string')
    return holder.message;
  return null;
}
