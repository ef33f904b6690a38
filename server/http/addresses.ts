/**
 * Which addresses this studio answers to. A Host or Origin that is not among them is refused: that is what stops a
 * foreign page from reaching a studio on this machine through a name it controls (DNS rebinding) or by plain posting.
 */
import { isIP } from 'node:net';

export interface Addresses {
  /** What people open, without a slash at the end. */
  publicUrl: string;
  /** Where programs on this machine reach it, past any proxy. */
  localUrl: string;
  /** True when people come by https. */
  secure: boolean;
  /** True when a request may carry this Host header. */
  allowsHost(host: string | undefined): boolean;
  /** True when a page of this origin may change state here. */
  allowsOrigin(origin: string): boolean;
}

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/** `port` is the real one, after listening. Throws nothing: the environment was checked before. */
export function createAddresses(options: { host: string; port: number; publicUrl: string | null }): Addresses {
  const { host, port } = options;
  const publicUrl = options.publicUrl ? new URL(options.publicUrl) : null;
  const bracketed = isIP(host) === 6 ? `[${host}]` : host;
  const everyInterface = host === '0.0.0.0' || host === '::' || host === '';
  const shownHost = everyInterface ? '127.0.0.1' : bracketed;
  const names = new Set([bracketed.toLowerCase(), ...LOOPBACK_NAMES].map((name) => `${name}:${port}`));
  if (port === 80) for (const name of [bracketed.toLowerCase(), ...LOOPBACK_NAMES]) names.add(name);
  const localUrl = `http://${shownHost}:${port}`;
  const isLoopback = (name: string) => LOOPBACK_NAMES.includes(name);

  const allowsHost = (given: string | undefined): boolean => {
    const value = given?.toLowerCase();
    return value !== undefined && (value === publicUrl?.host || isOwnHost(value));
  };
  const isOwnHost = (value: string): boolean => {
    if (names.has(value)) return true;
    // On every interface people come by number; a number cannot be rebound, a foreign name can.
    if (!everyInterface) return false;
    const literal = /^(\[[0-9a-f:.]+\]|\d{1,3}(?:\.\d{1,3}){3})(?::(\d+))?$/.exec(value);
    if (!literal?.[1] || Number(literal[2] ?? 80) !== port) return false;
    return isLoopback(literal[1]) || isIP(literal[1].replace(/[[\]]/g, '')) !== 0;
  };

  return {
    publicUrl: publicUrl ? publicUrl.href.replace(/\/$/, '') : localUrl,
    localUrl,
    secure: publicUrl?.protocol === 'https:',
    allowsHost,
    allowsOrigin(origin) {
      let url: URL;
      try {
        url = new URL(origin);
      } catch {
        return false;
      }
      if (url.origin !== origin.toLowerCase()) return false;
      if (publicUrl && url.origin === publicUrl.origin) return true;
      if (url.protocol !== 'http:') return false;
      return isOwnHost(url.host) || isOwnHost(`${url.host}:80`);
    },
  };
}
