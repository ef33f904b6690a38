'use client';
import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createTRPCClient, createWSClient, httpBatchLink, httpLink, splitLink, wsLink } from '@trpc/client';
import { type ReactNode, useState } from 'react';
import { transformer } from '@/server/core/transformer';
import type { AppRouter } from '@/server/routers/app-router';
import { isWorthAsking, readServerProblem } from './server-errors';
import { TRPCProvider } from './trpc';

/** A session that has ended leads to the sign-in page and back again. */
function leaveToSignIn(error: unknown): void {
  if (readServerProblem(error).code !== 'UNAUTHORIZED' || window.location.pathname === '/sign-in') return;
  const here = window.location.pathname + window.location.search;
  window.location.replace(`/sign-in?next=${encodeURIComponent(here)}`);
}

function makeQueryClient(): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({ onError: leaveToSignIn }),
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        retry: (failures, error) => failures < 2 && isWorthAsking(error),
        retryDelay: (attempt) => Math.min(500 * 2 ** attempt, 4_000),
      },
      mutations: { onError: leaveToSignIn },
    },
  });
}

/** Queries and mutations over HTTP, batched; subscriptions over one WebSocket a tab, opened when the first is wanted. */
function makeClient() {
  const http = { url: '/api/trpc', transformer };
  if (typeof window === 'undefined') return createTRPCClient<AppRouter>({ links: [httpLink(http)] });
  const socket = createWSClient({
    url: () => `${window.location.origin.replace(/^http/, 'ws')}/api/ws`,
    lazy: { enabled: true, closeMs: 10_000 },
    keepAlive: { enabled: true },
  });
  return createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: (operation) => operation.type === 'subscription',
        true: wsLink<AppRouter>({ client: socket, transformer }),
        false: splitLink({
          condition: (operation) => operation.context.onItsOwn === true,
          true: httpLink<AppRouter>(http),
          false: httpBatchLink<AppRouter>({ ...http, maxURLLength: 4_000 }),
        }),
      }),
    ],
  });
}

export function Providers({ children }: { children: ReactNode }) {
  const [queryClient] = useState(makeQueryClient);
  const [client] = useState(makeClient);
  return (
    <QueryClientProvider client={queryClient}>
      <TRPCProvider trpcClient={client} queryClient={queryClient}>
        {children}
      </TRPCProvider>
    </QueryClientProvider>
  );
}
