import type { Locale } from '../../components/shell/locale';
import type messages from '../../messages/en.json';

/** A key that does not exist in the English messages is a type error. */
declare module 'next-intl' {
  interface AppConfig {
    Locale: Locale;
    Messages: typeof messages;
  }
}
