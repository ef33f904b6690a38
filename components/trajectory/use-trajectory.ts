'use client';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useSubscription } from '@trpc/tanstack-react-query';
import { useEffect, useRef, useState } from 'react';
import { useTRPC } from '@/components/trpc';
import { decodeTokens, type WireTokens } from '@/server/core/tokens/wire';

/** A running trajectory is asked for again at most this often, however fast its events come. */
const REFETCH_EVERY_MS = 1_200;
/** Without the socket the page asks now and then. */
const ASK_INSTEAD_EVERY_MS = 4_000;

async function fetchTokens(trajectoryId: string, sequence: number, signal: AbortSignal): Promise<WireTokens> {
  const response = await fetch(`/api/trajectories/${encodeURIComponent(trajectoryId)}/tokens?sequence=${sequence}`, {
    signal,
  });
  if (!response.ok) throw new Error(await sentenceOf(response));
  return decodeTokens(await response.arrayBuffer());
}

/** The server answers errors as JSON with a sentence; what is not that is told by its status. */
async function sentenceOf(response: Response): Promise<string> {
  const text = (await response.text()).slice(0, 2_000);
  try {
    const body: unknown = JSON.parse(text);
    const error = typeof body === 'object' && body !== null && 'error' in body ? body.error : body;
    if (typeof error === 'string') return error;
    if (typeof error === 'object' && error !== null && 'message' in error) return String(error.message);
  } catch {
    // Not JSON: told below.
  }
  return `HTTP ${response.status}`;
}

/** A trajectory and the tokens of one of its sequences; while it runs, both follow its run's feed. */
export function useTrajectory(trajectoryId: string, asked: number) {
  const trpc = useTRPC();
  const queryClient = useQueryClient();
  const options = trpc.trajectories.get.queryOptions({ trajectoryId });
  const query = useQuery(options);
  const detail = query.data;
  // An address is written by anyone: a sequence that does not exist is the first one.
  const known = detail?.sequences ?? [];
  const sequence = known.some((own) => own.index === asked) ? asked : (known[0]?.index ?? 0);
  // What is final changes still in one way: it is scored, and scored again.
  const { policyScoredBy, refScoredBy } = known.find((own) => own.index === sequence) ?? {};
  const scored = `${policyScoredBy?.atMs} ${refScoredBy?.atMs}`;
  const tokens = useQuery({
    queryKey: ['tokens', trajectoryId, sequence, scored],
    queryFn: ({ signal }) => fetchTokens(trajectoryId, sequence, signal),
    enabled: known.length > 0,
    staleTime: detail?.final ? Number.POSITIVE_INFINITY : 0,
    placeholderData: (before, query) => {
      const [, id, index] = query?.queryKey ?? [];
      return id === trajectoryId && index === sequence ? before : undefined;
    },
    // Comparing a million numbers to find that they are other numbers helps nobody.
    structuralSharing: false,
  });

  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const refetchSoon = () => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      void queryClient.invalidateQueries({ queryKey: options.queryKey });
      void queryClient.invalidateQueries({ queryKey: ['tokens', trajectoryId] });
    }, REFETCH_EVERY_MS);
  };
  useEffect(
    () => () => {
      if (timer.current) clearTimeout(timer.current);
    },
    [],
  );

  // Until the group is complete its advantages are missing, so the feed is of use a little longer than the trajectory.
  const waiting =
    detail !== undefined &&
    (!detail.final || detail.siblings.some((row) => row.status === 'running' || row.status === 'queued'));
  const [from, setFrom] = useState<string | null>(null);
  if (detail && from === null) setFrom(String(detail.eventSeq));
  const members = new Set(detail?.siblings.map((row) => row.trajectoryId));
  const feed = useSubscription(
    trpc.runs.feed.subscriptionOptions(
      { runId: detail?.runId ?? '', lastEventId: from !== null && Number(from) >= 0 ? from : undefined },
      {
        enabled: waiting && from !== null,
        onData: ({ data }) => {
          if (
            data.some(
              (entry) =>
                entry.trajectoryId === null ||
                entry.trajectoryId === trajectoryId ||
                (members.has(entry.trajectoryId) && entry.status !== null),
            )
          )
            refetchSoon();
        },
      },
    ),
  );
  const askInstead = useRef(refetchSoon);
  askInstead.current = refetchSoon;
  const deaf = waiting && feed.status !== 'pending';
  useEffect(() => {
    if (!deaf) return;
    const interval = setInterval(() => askInstead.current(), ASK_INSTEAD_EVERY_MS);
    return () => clearInterval(interval);
  }, [deaf]);

  return { query, tokens, sequence, live: detail !== undefined && !detail.final };
}
