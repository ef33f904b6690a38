import type { NextConfig } from 'next';
import createNextIntlPlugin from 'next-intl/plugin';

// Pages are served by server/main.ts, which sends the security headers of every answer itself.
const config: NextConfig = {
  poweredByHeader: false,
  reactStrictMode: true,
  devIndicators: false,
  // Types are checked by `npm run typecheck`, not a second time by every build.
  typescript: { ignoreBuildErrors: true },
};

export default createNextIntlPlugin('./app/i18n/request.ts')(config);
