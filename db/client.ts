/** The one way a postgres.js client is made. */
import postgres, { type Options, type PostgresType, type Sql } from 'postgres';
import type { Logger } from '../server/observability/logger';

/** Counts, sequence numbers and milliseconds, all far below 2^53; a larger one is an error, never a rounded number. */
const int8: PostgresType<number> = {
  to: 20,
  from: [20],
  serialize: (value: number) => String(value),
  parse: (text: string) => {
    const value = Number(text);
    if (!Number.isSafeInteger(value))
      throw new RangeError(`The database returned ${text}, which is too large a number.`);
    return value;
  },
};

type Where = string | Pick<Options<Record<string, PostgresType>>, 'path' | 'user' | 'database'>;

export function connectClient(where: Where, max: number, logger: Logger): Sql {
  const options: Options<{ int8: PostgresType<number> }> = {
    max,
    connect_timeout: 10,
    idle_timeout: 0,
    // The embedded database has one connection for its whole life; a server's balancers are content without ageing too.
    max_lifetime: null,
    types: { int8 },
    connection: { application_name: 'trajectory-studio' },
    onnotice: (notice) => logger.debug({ notice: notice.message }, 'database notice'),
  };
  const client = typeof where === 'string' ? postgres(where, options) : postgres({ ...options, ...where });
  return client as unknown as Sql;
}
