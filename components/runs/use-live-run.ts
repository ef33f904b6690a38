'use client';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useSubscription } from '@trpc/tanstack-react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { useTRPC } from '@/components/trpc';
import type { RunFeedEntry } from '@/server/core/views';
import { asksForWholeAnswer, foldFeed, stillWorth } from './fold-feed';
import { isLive } from './run-figures';

/** How often what has arrived is drawn: events come in thousands, eyes in tens. */
const DRAW_EVERY_MS = 150;
/** The least time between two whole answers; longer where an answer itself takes long. */
const REFETCH_EVERY_MS = 1_000;
const ASK_INSTEAD_EVERY_MS = 3_000;

/**
 * A run that stays current. The whole answer comes by query; events after it come over the WebSocket and are folded
 * over it; whenever events say that other figures changed, the whole answer is asked for again, at most once a second.
 */
export function useLiveRun(runId: string) {
  const trpc = useTRPC();
  const queryClient = useQueryClient();
  const options = trpc.runs.get.queryOptions(
    { runId },
    { staleTime: Number.POSITIVE_INFINITY, refetchOnMount: 'always' },
  );
  const query = useQuery(options);
  const detail = query.data;

  const [tail, setTail] = useState<RunFeedEntry[]>([]);
  const arrived = useRef<RunFeedEntry[]>([]);
  const drawTimer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const refetchTimer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const lastRefetch = useRef({ endedAtMs: 0, tookMs: 0 });
  /** Something changed since the last whole answer was asked for. */
  const outdated = useRef(false);
  useEffect(
    () => () => {
      clearTimeout(drawTimer.current);
      clearTimeout(refetchTimer.current);
    },
    [],
  );

  const refetchSoon = () => {
    outdated.current = true;
    if (refetchTimer.current !== undefined) return;
    const { endedAtMs, tookMs } = lastRefetch.current;
    const pause = Math.max(REFETCH_EVERY_MS, 4 * tookMs);
    refetchTimer.current = setTimeout(
      async () => {
        const startedAtMs = Date.now();
        outdated.current = false;
        await Promise.all([
          queryClient.refetchQueries(trpc.runs.get.queryFilter({ runId })),
          queryClient.invalidateQueries(trpc.runs.failures.queryFilter({ runId })),
        ]);
        const now = Date.now();
        lastRefetch.current = { endedAtMs: now, tookMs: now - startedAtMs };
        refetchTimer.current = undefined;
        if (outdated.current) refetchSoon();
      },
      Math.max(0, endedAtMs + pause - Date.now()),
    );
  };

  const draw = () => {
    drawTimer.current = undefined;
    const batch = arrived.current;
    arrived.current = [];
    const answer = queryClient.getQueryData(options.queryKey);
    setTail((before) => (answer ? stillWorth(answer, [...before, ...batch]) : [...before, ...batch]));
    if (asksForWholeAnswer(batch)) refetchSoon();
  };

  // The first answer's number is where the feed begins (−1: nothing has happened yet, so from the start); later
  // answers must not start it anew.
  const [from, setFrom] = useState<{ runId: string; eventSeq: number } | null>(null);
  if (detail && from?.runId !== runId) {
    setFrom({ runId, eventSeq: detail.eventSeq });
    setTail([]);
  }
  const live = detail !== undefined && isLive(detail);
  const feed = useSubscription(
    trpc.runs.feed.subscriptionOptions(
      { runId, lastEventId: from && from.eventSeq >= 0 ? String(from.eventSeq) : undefined },
      {
        enabled: live && from?.runId === runId,
        onData: ({ data }) => {
          arrived.current.push(...data);
          drawTimer.current ??= setTimeout(draw, DRAW_EVERY_MS);
        },
      },
    ),
  );

  // Without the socket (a proxy that refuses it, a server that restarts) the page asks now and then instead.
  const askInstead = useRef(refetchSoon);
  askInstead.current = refetchSoon;
  const deaf = live && feed.status !== 'pending';
  useEffect(() => {
    if (!deaf) return;
    const timer = setInterval(() => askInstead.current(), ASK_INSTEAD_EVERY_MS);
    return () => clearInterval(timer);
  }, [deaf]);

  const run = useMemo(() => (detail ? foldFeed(detail, tail) : undefined), [detail, tail]);
  return { query, run, connection: live ? feed.status : ('idle' as const) };
}
