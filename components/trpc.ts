'use client';
import { createTRPCContext } from '@trpc/tanstack-react-query';
import type { AppRouter } from '@/server/routers/app-router';

/** `const trpc = useTRPC()` and then `useQuery(trpc.runs.list.queryOptions({ … }))`. */
export const { TRPCProvider, useTRPC } = createTRPCContext<AppRouter>();

/**
 * For queries that may take long (a server's health): asked in a request of their own, so that they do not
 * hold up the quick ones they would be batched with.
 */
export const ON_ITS_OWN = { trpc: { context: { onItsOwn: true } } } as const;
