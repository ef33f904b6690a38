import type { NextConfig } from 'next';
import createNextIntlPlugin from 'next-intl/plugin';

const config: NextConfig = {
  poweredByHeader: false,
  reactStrictMode: true,
  // The page is served by server/main.ts, which sends the security headers of every answer itself.
  typescript: { ignoreBuildErrors: true },
};

export default createNextIntlPlugin('./app/i18n/request.ts')(config);
