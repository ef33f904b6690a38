/** Everything a page or a program can ask, in one router. The browser imports its type only. */
import type { AuditEntryView, Page, Viewer } from '../core/views';
import { listAuditInput } from '../services/audit/audit-inputs';
import { listAudit } from '../services/audit/list-audit';
import { currentViewer } from '../services/people/current-viewer';
import { makeOneTimeToken } from '../services/people/make-one-time-token';
import { makeOneTimeTokenInput } from '../services/people/people-inputs';
import { backendsRouter } from './backends-router';
import { datasetsRouter } from './datasets-router';
import { runsRouter } from './runs-router';
import { skillsRouter } from './skills-router';
import { trajectoriesRouter } from './trajectories-router';
import { procedures, router } from './trpc';

export const appRouter = router({
  viewer: router({
    me: procedures.viewer.query(({ ctx }): Promise<Viewer> => currentViewer({ ctx: ctx.serviceContext })),
  }),
  runs: runsRouter,
  trajectories: trajectoriesRouter,
  skills: skillsRouter,
  datasets: datasetsRouter,
  backends: backendsRouter,
  audit: router({
    list: procedures.viewer
      .input(listAuditInput)
      .query(({ ctx, input }): Promise<Page<AuditEntryView>> => listAudit({ ctx: ctx.serviceContext, input })),
  }),
  people: router({
    /** A token for one sign-in, for the command line to print; shown once, stored as a hash. */
    makeOneTimeToken: procedures.admin
      .input(makeOneTimeTokenInput)
      .mutation(
        ({ ctx, input }): Promise<{ token: string; expiresAtMs: number }> =>
          makeOneTimeToken({ ctx: ctx.serviceContext, input }),
      ),
  }),
});

export type AppRouter = typeof appRouter;
