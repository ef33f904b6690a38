/** Resources in one form before they are matched, so that two spellings of one thing meet one rule. */
import { splitCommandLine } from './command-line';

export interface NormalResource {
  /** What patterns are matched against. */
  text: string;
  /** Why a rule that would allow it must not be trusted; null when the resource is plain. */
  unclear: string | null;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const ODD = /[\u0000-\u001f\u007f\\]/;
const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([\s\S]*)$/;

/** One entry a resource; a command line gives one for each command in it. */
export function normaliseResource(resource: string): NormalResource[] {
  const [, schemeAsWritten, rest = ''] = SCHEME.exec(resource) ?? [];
  if (schemeAsWritten === undefined) return [{ text: resource, unclear: 'it has no scheme' }];
  const scheme = schemeAsWritten.toLowerCase();
  if (scheme === 'tool') return [{ text: `tool://${rest}`, unclear: null }];
  if (scheme === 'command') return commands(rest);
  if (scheme === 'file') return [file(rest)];
  if (scheme === 'http' || scheme === 'https') return [web(`${scheme}://${rest}`)];
  return [other(scheme, rest)];
}

function commands(line: string): NormalResource[] {
  const { commands: found, unclear } = splitCommandLine(line);
  if (found.length === 0) return [{ text: `command://${line}`, unclear }];
  return found.map((command) => ({ text: `command://${command}`, unclear }));
}

function file(rest: string): NormalResource {
  const path = rest.replace(/^localhost(?=\/)/i, '');
  const decoded = decode(path);
  if (decoded === null) return { text: `file://${path}`, unclear: 'its percent-encoding is broken' };
  const twice = /%[0-9A-Fa-f]{2}/.test(decoded) ? 'it is percent-encoded twice' : null;
  const unclear = !decoded.startsWith('/') ? 'its path is not absolute' : (twice ?? oddities(decoded));
  return { text: `file://${withoutDots(decoded)}`, unclear };
}

function web(address: string): NormalResource {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return { text: address, unclear: 'it is not a readable address' };
  }
  const signsIn = url.username !== '' || url.password !== '';
  const host = url.host.replace(/\.(?=:\d+$|$)/, '');
  const path = tidyEncoding(url.pathname);
  const text = `${url.protocol}//${host}${path.text}${tidyEncoding(url.search).text}`;
  return { text, unclear: signsIn ? 'it holds a name or password' : path.unclear };
}

/** database://HOST/NAME and schemes of tools to come. */
function other(scheme: string, rest: string): NormalResource {
  const slash = rest.indexOf('/');
  const authority = (slash < 0 ? rest : rest.slice(0, slash)).toLowerCase();
  if (slash < 0)
    return {
      text: `${scheme}://${authority}`,
      unclear: authority.includes('%') ? 'its host is percent-encoded' : oddities(authority),
    };
  const path = tidyEncoding(rest.slice(slash));
  const unclear = authority.includes('@')
    ? 'it holds a name or password'
    : (path.unclear ?? oddities(authority + path.text));
  return { text: `${scheme}://${authority}${withoutDots(path.text)}`, unclear };
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Decodes what needs no encoding; what a server might decode into another path, and broken encoding, is unclear. */
function tidyEncoding(text: string): NormalResource {
  let unclear: string | null = null;
  const tidy = text.replace(/(?:%[0-9A-Fa-f]{2})+|%/g, (run) => {
    if (/%(?:2f|5c|00|25)/i.test(run)) unclear = 'it holds an encoded separator';
    try {
      return decodeURI(run).replace(/%[0-9a-f]{2}/gi, (kept) => kept.toUpperCase());
    } catch {
      unclear = 'its percent-encoding is broken';
      return run.toUpperCase();
    }
  });
  return { text: tidy, unclear: unclear ?? oddities(tidy) };
}

/** Resolves `.`, `..` and empty segments; never above the root. A slash at the end stays. */
function withoutDots(path: string): string {
  const kept: string[] = [];
  const segments = path.split('/');
  for (const segment of segments) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  const last = segments.at(-1);
  const open = kept.length > 0 && (last === '' || last === '.' || last === '..');
  return `/${kept.join('/')}${open ? '/' : ''}`;
}

function oddities(text: string): string | null {
  return ODD.test(text) ? 'it holds control characters or backslashes' : null;
}
