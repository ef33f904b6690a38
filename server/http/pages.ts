/** Which addresses are pages, which are open to everyone, and the way to the sign-in page. */
import { readdir } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join, relative, sep } from 'node:path';

/** Static files of the build and of public/: they are the same for everyone and hold nothing of anyone. */
export function isPublicPath(pathname: string, publicFiles: ReadonlySet<string>, development: boolean): boolean {
  if (pathname.startsWith('/_next/static/') || publicFiles.has(pathname)) return true;
  return development && (pathname.startsWith('/_next/') || pathname.startsWith('/__nextjs'));
}

/** Addresses of the files in a folder, `/favicon.ico`, and of Next's own icon routes; none when it is not there. */
export async function listPublicFiles(folder: string): Promise<Set<string>> {
  const paths = new Set([
    '/favicon.ico',
    '/icon.svg',
    '/icon.png',
    '/apple-icon.png',
    '/manifest.webmanifest',
    '/robots.txt',
  ]);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const path = relative(folder, join(entry.parentPath, entry.name)).split(sep).map(encodeURIComponent).join('/');
    paths.add(`/${path}`);
  }
  return paths;
}

/** Where someone who is not signed in is sent; `next` brings them back. */
export function signInAddress(url: URL): string {
  const wanted = `${url.pathname}${url.search}`;
  return wanted === '/' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(wanted)}`;
}

/** A page that asks for the same address once more, now from this site itself. The address is this site's own. */
export function askForPageAgain(res: ServerResponse, url: URL): void {
  const address = `${url.pathname}${url.search}`.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
  const html = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${address}"><title>…</title>`;
  res.setHeader('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'; base-uri 'none'");
  res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store' });
  res.end(html);
}
