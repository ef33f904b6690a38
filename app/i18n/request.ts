import { cookies, headers } from 'next/headers';
import { getRequestConfig } from 'next-intl/server';
import { chooseLocale, LOCALE_COOKIE } from '../../components/shell/locale';

/** next-intl asks this once a request; messages are the ones of the chosen language, whole. */
export default getRequestConfig(async () => {
  const locale = chooseLocale((await cookies()).get(LOCALE_COOKIE)?.value, (await headers()).get('accept-language'));
  const messages = (await import(`../../messages/${locale}.json`)).default;
  return { locale, messages, timeZone: 'UTC' };
});
