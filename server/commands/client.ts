/**
 * What the command line asks of the studio: always through a server's own interface. When none holds the data folder,
 * the command starts one without pages for as long as it needs it (see cli.ts), so that there is one way only.
 */
import { createTRPCClient, httpLink, TRPCClientError } from '@trpc/client';
import type { inferRouterInputs } from '@trpc/server';
import {
  Conflict,
  Forbidden,
  Invalid,
  NotFound,
  type StudioError,
  TimedOut,
  Unauthenticated,
  Unavailable,
} from '../core/errors';
import type { BackendCheck } from '../core/inference';
import { transformer } from '../core/transformer';
import type { BackendDetail, BackendSummary, RunDetail, ScoreJobView, WeightUpdateView } from '../core/views';
import type { AppRouter } from '../routers/app-router';

type Inputs = inferRouterInputs<AppRouter>;

export interface StartRunRequest {
  skill: string;
  skillVersion?: number;
  dataset: string;
  backend?: string;
  groupSize?: number;
  tasks?: number;
  seed?: number;
  name?: string;
  temperature?: number;
  judge?: string;
  dropNoSignal?: boolean;
  maxStaleness?: number;
  stale?: 'redo' | 'drop';
}

export interface StudioClient {
  /** Where people open it, or null when it lives only as long as the command. */
  readonly url: string | null;
  startRun(request: StartRunRequest): Promise<string>;
  getRun(runId: string): Promise<RunDetail>;
  cancelRun(runId: string): Promise<void>;
  /** Text of the export, in pieces. Throws when it could not be completed. */
  exportRun(runId: string, options: { all: boolean }): AsyncIterable<string>;
  /** What an exact export of the run leaves out. */
  exportCounts(
    runId: string,
  ): Promise<{ approximate: number; notRaw: number; withoutSignal: number; unfinished: number }>;
  saveSkill(yaml: string): Promise<{ name: string; version: number }>;
  importDataset(name: string, jsonl: string): Promise<{ name: string; taskCount: number }>;
  listBackends(): Promise<BackendSummary[]>;
  getBackend(name: string): Promise<BackendDetail>;
  checkServer(server: Inputs['backends']['check']): Promise<BackendCheck>;
  addBackend(backend: Inputs['backends']['add']): Promise<{ name: string; changed: boolean; checks: BackendCheck[] }>;
  removeBackend(name: string): Promise<void>;
  /** As it stands after some seconds: it may still be running. */
  updateWeights(update: Inputs['backends']['updateWeights']): Promise<WeightUpdateView>;
  /** The newest updates, newest first. */
  weightUpdates(name: string): Promise<WeightUpdateView[]>;
  pauseBackend(name: string): Promise<void>;
  resumeBackend(name: string): Promise<void>;
  scoreRun(request: Inputs['runs']['score']): Promise<ScoreJobView>;
  scoreStatus(runId: string): Promise<ScoreJobView | null>;
  /** An address that signs one person in, once. */
  signInAddress(next?: string): Promise<string>;
  close(): Promise<void>;
}

/** True when a studio answers there. */
export async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(3000) })).ok;
  } catch {
    return false;
  }
}

/** @param close ends what was started for this client alone */
export function connect(
  server: { url: string; publicUrl: string; token: string; lasting: boolean },
  close: () => Promise<void> = async () => undefined,
): StudioClient {
  const headers = { authorization: `Bearer ${server.token}` };
  const trpc = createTRPCClient<AppRouter>({
    links: [httpLink({ url: `${server.url}/api/trpc`, transformer, headers })],
  });
  return {
    url: server.lasting ? server.publicUrl : null,
    startRun: (request) => plain(trpc.runs.start.mutate(request).then((run) => run.runId)),
    getRun: (runId) => plain(trpc.runs.get.query({ runId })),
    cancelRun: (runId) => plain(trpc.runs.cancel.mutate({ runId }).then(() => undefined)),
    exportRun: (runId, { all }) =>
      readText(`${server.url}/api/runs/${encodeURIComponent(runId)}/export${all ? '?all=1' : ''}`, headers),
    exportCounts: (runId) => plain(trpc.runs.exportCounts.query({ runId })),
    saveSkill: (yaml) => plain(trpc.skills.save.mutate({ yaml })),
    importDataset: (name, jsonl) => plain(trpc.datasets.import.mutate({ name, jsonl })),
    listBackends: () => plain(trpc.backends.list.query()),
    getBackend: (name) => plain(trpc.backends.get.query({ name })),
    checkServer: (server) => plain(trpc.backends.check.mutate(server)),
    addBackend: (backend) => plain(trpc.backends.add.mutate(backend)),
    removeBackend: (name) => plain(trpc.backends.remove.mutate({ name }).then(() => undefined)),
    updateWeights: (update) => plain(trpc.backends.updateWeights.mutate(update)),
    weightUpdates: (name) => plain(trpc.backends.weightUpdates.query({ name, limit: 20 }).then(({ items }) => items)),
    pauseBackend: (name) => plain(trpc.backends.pause.mutate({ name }).then(() => undefined)),
    resumeBackend: (name) => plain(trpc.backends.resume.mutate({ name }).then(() => undefined)),
    scoreRun: (request) => plain(trpc.runs.score.mutate(request)),
    scoreStatus: (runId) => plain(trpc.runs.scoreStatus.query({ runId })),
    signInAddress: async (next) => {
      const { token } = await plain(trpc.people.makeOneTimeToken.mutate({}));
      return signInUrl(server.publicUrl, token, next);
    },
    close,
  };
}

export function signInUrl(url: string, token: string, next?: string): string {
  const address = new URL('/sign-in', url);
  address.searchParams.set('token', token);
  if (next) address.searchParams.set('next', next);
  return address.href;
}

async function* readText(url: string, headers: Record<string, string>): AsyncIterable<string> {
  const answer = await fetch(url, { headers }).catch((cause) => {
    throw new Unavailable('The studio did not answer.', {}, { cause });
  });
  if (!answer.ok || !answer.body) throw errorOfStatus(answer.status, await messageOf(answer));
  const decoder = new TextDecoder();
  try {
    for await (const part of answer.body) yield decoder.decode(part, { stream: true });
  } catch (cause) {
    throw new Unavailable(
      'The export broke off before it was complete; what was written is not all of it.',
      {},
      { cause },
    );
  }
  yield decoder.decode();
}

async function messageOf(answer: Response): Promise<string> {
  const text = await answer.text();
  try {
    const body = JSON.parse(text) as { error?: { message?: string } | string; message?: string };
    return (typeof body.error === 'string' ? body.error : body.error?.message) ?? body.message ?? text;
  } catch {
    return text.slice(0, 300) || `The studio answered ${answer.status}.`;
  }
}

/** The family's error back from the wire, so that exit codes are those of the local way. */
async function plain<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof TRPCClientError)) throw error;
    const status = (error.data as { httpStatus?: number } | null)?.httpStatus;
    if (status === undefined) throw new Unavailable('The studio did not answer.', {}, { cause: error });
    throw errorOfStatus(status, error.message);
  }
}

function errorOfStatus(status: number, message: string): StudioError {
  switch (status) {
    case 400:
      return new Invalid(message);
    case 401:
      return new Unauthenticated(message);
    case 403:
      return new Forbidden(message);
    case 404:
      return new NotFound(message);
    case 409:
      return new Conflict(message);
    case 504:
      return new TimedOut(message);
    default:
      return new Unavailable(message);
  }
}
