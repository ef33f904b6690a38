/** Column types that drizzle does not bring, or brings with a fault that would change data. */
import { customType } from 'drizzle-orm/pg-core';

export const bytea = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' });

/**
 * JSON kept exactly as it was written. `json` and not `jsonb`: jsonb refuses U+0000 and lone surrogates, which model
 * and tool text may contain. And not drizzle's own column: that parses a second time what the driver has already
 * parsed, so that the string "42" would come back as the number 42. SQL NULL stands for both NULL and JSON null.
 */
export const json = <T>() =>
  customType<{ data: T; driverData: unknown }>({
    dataType: () => 'json',
    toDriver: (value) => JSON.stringify(value),
    fromDriver: (value) => value as T,
  });
