'use client';
import { useQuery } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { useTRPC } from '@/components/trpc';
import { ROLES, type Role } from '@/server/core/vocabulary';

/**
 * Whether the person at the screen has this role or more; true while it is not known, the server decides anyway.
 * It is not known while server markup is taken over: a part that comes late must not differ from what the server drew.
 */
export function useMay(role: Role): boolean {
  const trpc = useTRPC();
  const { data } = useQuery(trpc.viewer.me.queryOptions(undefined, { staleTime: 60_000 }));
  const takenOver = useSyncExternalStore(never, yes, no);
  return data === undefined || !takenOver || ROLES.indexOf(data.role) >= ROLES.indexOf(role);
}

const never = () => () => {};
const yes = () => true;
const no = () => false;
