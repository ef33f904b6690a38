'use client';
import { useQuery } from '@tanstack/react-query';
import { useTRPC } from '@/components/trpc';
import { ROLES, type Role } from '@/server/core/vocabulary';

/** Whether the person at the screen has this role or more; true while it is not known, the server decides anyway. */
export function useMay(role: Role): boolean {
  const trpc = useTRPC();
  const { data } = useQuery(trpc.viewer.me.queryOptions(undefined, { staleTime: 60_000 }));
  return data === undefined || ROLES.indexOf(data.role) >= ROLES.indexOf(role);
}
