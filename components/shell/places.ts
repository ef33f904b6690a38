/** The places of the studio, in the order of the navigation. `key` follows `g` on the keyboard. */
export const PLACES = [
  { id: 'home', href: '/', key: 'h' },
  { id: 'runs', href: '/runs', key: 'r' },
  { id: 'skills', href: '/skills', key: 's' },
  { id: 'datasets', href: '/datasets', key: 'd' },
  { id: 'backends', href: '/backends', key: 'b' },
  { id: 'audit', href: '/audit', key: 'a' },
] as const;

/** Whether `pathname` lies in the place at `href`. */
export function isAt(pathname: string, href: string): boolean {
  return href === '/' ? pathname === '/' : pathname === href || pathname.startsWith(`${href}/`);
}
