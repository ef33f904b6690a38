/** A backend on servers, from what is stored of it: each address a replica, all of them behind one router. */
import type { Ambient } from '../core/ambient';
import type { RemoteKind } from '../core/inference';
import type { RemoteSettings } from '../core/inference-settings';
import type { Logger } from '../observability/logger';
import { createHttpClient, type HttpClient } from './remote/http-client';
import type { MetricNames } from './remote/protocol';
import { protocolsWith } from './remote/protocols';
import { RemoteBackend } from './remote/remote-backend';
import type { StoredUpdates } from './router/left-behind';
import type { ReplicaSource } from './router/replica';
import { ReplicaRouter } from './router/router';

export interface OpenRemoteOptions {
  name: string;
  kind: RemoteKind;
  settings: RemoteSettings;
  /** The key that goes to the server at this address alone. */
  keyFor(url: string): string | null;
  /** Goes to no server: it signs requests for new weights where a kind of server wants that. */
  controlKey?: string | null;
  logger: Logger;
  ambient: Ambient;
  /** An operator paused it before it was opened here. */
  paused?: boolean;
  /** What is kept of its weight updates. */
  updates?: StoredUpdates;
  /** A server was started again, or serves something else than when it was checked: the stored check is out of date. */
  onRestart?(): void;
}

/** Requests worth having with one server at once, where neither the settings nor the check say. */
const IN_FLIGHT = 64;

/** Opens at once; servers that do not answer are asked until they do. Throws Invalid for an address or a key that cannot be used. */
export function openRemote(options: OpenRemoteOptions): ReplicaRouter {
  const { name, settings, logger, ambient, paused = false, updates } = options;
  const { maxInFlight, tokensInFlight, check } = settings;
  return new ReplicaRouter({
    name,
    replicas: settings.replicas.map(({ url }) => sourceOf(url, options)),
    ambient,
    logger,
    expected: check?.capabilities ?? null,
    paused,
    ...(updates && { updates }),
    ...(maxInFlight !== undefined && { maxInFlight }),
    ...(tokensInFlight !== undefined && { tokensInFlight }),
  });
}

function sourceOf(url: string, options: OpenRemoteOptions): ReplicaSource {
  const { name, kind, settings, keyFor, controlKey, updates, logger, ambient } = options;
  const { model, tokenizer, contextLength, maxInFlight, check } = settings;
  const protocol = protocolsWith(controlKey)[kind];
  const key = keyFor(url);
  const checked = check?.capabilities ?? null;
  return {
    url,
    open: async () => {
      const backend = await RemoteBackend.open({
        name,
        url,
        key,
        controlKey,
        protocol,
        model: model ?? null,
        tokenizerFolder: tokenizer ?? null,
        maxInFlight: maxInFlight ?? checked?.maxInFlight ?? IN_FLIGHT,
        logger,
        ambient,
        ...(updates && { labels: updates }),
        // Its context is what it says now, and what was said for it only where it does not tell.
        capabilities: { ...checked, contextLength },
        onRestart: () => options.onRestart?.(),
      });
      if (check?.url === url && check.fingerprint !== backend.fingerprint) options.onRestart?.();
      return backend;
    },
    ...(protocol.metrics && {
      metrics: metricsOf(protocol.metrics, createHttpClient({ backend: name, url, key, controlKey })),
    }),
  };
}

/** Over a client of its own: figures are wanted also while the backend is not open. */
function metricsOf(names: MetricNames, http: HttpClient): NonNullable<ReplicaSource['metrics']> {
  return {
    names,
    read: async () => (await http.text('GET', names.route)).body,
    close: () => http.close(),
  };
}
