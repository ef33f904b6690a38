/** Asks the servers a backend is to consist of, and says in one sentence why they cannot be used, or not together. */
import { Invalid } from '../../core/errors';
import type { BackendCheck, BackendKind, RemoteKind } from '../../core/inference';
import type { RunningProcess, ServerToCheck } from '../context';

/** Servers asked at the same time: a check makes a server generate. */
const AT_ONCE = 8;
/** A refusal names this many servers; the rest are counted. */
const NAMED = 3;

export type WantedServers = Omit<ServerToCheck, 'url' | keyof KeysOfServer> & { urls: readonly string[] };
/** What may be used with the server at one address. */
export type KeysOfServer = Pick<ServerToCheck, 'key' | 'controlKey'>;

/** In the order of the addresses. Throws from the error family where a server cannot even be asked. */
export async function checkServers(
  process: Pick<RunningProcess, 'checkServer'>,
  { urls, ...wanted }: WantedServers,
  keysFor: (url: string) => KeysOfServer,
): Promise<BackendCheck[]> {
  const checks: BackendCheck[] = [];
  for (let at = 0; at < urls.length; at += AT_ONCE)
    checks.push(
      ...(await Promise.all(
        urls.slice(at, at + AT_ONCE).map((url) => process.checkServer({ ...wanted, url, ...keysFor(url) })),
      )),
    );
  return checks;
}

/** Throws Invalid unless all servers can be used, and as one backend: same kind, same model, same context. */
export function requireOneBackend(name: string, checks: readonly BackendCheck[]): { kind: RemoteKind } {
  const failed = checks.filter(({ ok }) => !ok);
  if (failed.length > 0) {
    const told = failed.slice(0, NAMED).map(({ url, items }) => {
      // Several items may fail for one reason.
      const says = new Set(items.filter(({ status }) => status === 'fail').map((item) => item.says.trim()));
      return `${url}: ${[...says].join(' ') || 'it cannot be used.'}`;
    });
    const more = failed.length > NAMED ? ` And ${failed.length - NAMED} more.` : '';
    throw new Invalid(`The backend ${name} cannot be used. ${told.join(' ')}${more}`);
  }
  const [first, ...others] = checks;
  if (!first?.kind)
    throw new Invalid(`The backend ${name} cannot be used: what kind of server it is was not found out.`);
  for (const other of others) {
    const difference = differenceOf(first, other);
    if (difference)
      throw new Invalid(`The servers of ${name} are not the same: ${difference}. Add them as backends of their own.`);
  }
  return { kind: first.kind };
}

/** Throws Invalid where a control key is given for servers that have no use for one. `auto`, null: not known yet. */
export function refuseControlKey(
  controlKey: string | null | undefined,
  servers: string,
  kind: BackendKind | 'auto' | null,
): void {
  if (controlKey && kind !== null && kind !== 'auto' && kind !== 'tensorrt-llm')
    throw new Invalid(`A control key is for servers of the kind tensorrt-llm, and ${servers} is of the kind ${kind}.`);
}

function differenceOf(a: BackendCheck, b: BackendCheck): string | null {
  const pairs: [string, unknown, unknown][] = [
    ['is a server of the kind', a.kind, b.kind],
    ['serves the model', a.capabilities?.modelName, b.capabilities?.modelName],
    ['has the context length', a.capabilities?.contextLength, b.capabilities?.contextLength],
  ];
  const different = pairs.find(([, left, right]) => left !== right);
  return different ? `${a.url} ${different[0]} ${different[1]} and ${b.url} ${different[2]}` : null;
}
