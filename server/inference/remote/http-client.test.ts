import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createSocketServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { Cancelled, Forbidden, Invalid, NotFound, type StudioError, TimedOut, Unavailable } from '../../core/errors';
import { contextOverflow, serverMessage } from './error-sentence';
import { createHttpClient, type HttpClientOptions } from './http-client';
import { writeJson } from './json-body';
import { KeyRedaction } from './server-words';

const KEY = 'sk-Very/Secret"Key+42';
const toClose: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close();
});

async function listen(server: Server): Promise<number> {
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  toClose.push(() => new Promise((closed) => server.close(closed)));
  return (server.address() as AddressInfo).port;
}

function client(options: Partial<HttpClientOptions> & { url: string }) {
  const made = createHttpClient({ backend: 'gpu', key: KEY, ...options });
  toClose.push(() => made.close());
  return made;
}

/** A server that answers everything in one way, and a client of it. */
async function answering(answer: RequestListener, options: Partial<HttpClientOptions> = {}) {
  const server = createServer(answer);
  const port = await listen(server);
  toClose.push(() => server.closeAllConnections());
  const url = `http://127.0.0.1:${port}`;
  return { http: client({ url, ...options }), url, server };
}

const reply = (status: number, body: unknown) => (_: IncomingMessage, response: ServerResponse) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
};

async function failure(promise: Promise<unknown>): Promise<StudioError> {
  const error = await promise.then(
    () => Promise.reject(new Error('It did not fail.')),
    (reason) => reason,
  );
  expect(JSON.stringify([error.message, error.details, String(error.cause), error.stack])).not.toContain('Very/Secret');
  return error;
}

describe('an answer', () => {
  it('is parsed; ids are sent as numbers, the key as a header, below the path of the address', async () => {
    const { url } = await answering((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        const { authorization } = request.headers;
        response.end(JSON.stringify({ method: request.method, path: request.url, body, authorization }));
      });
    });
    const http = client({ url: `${url}/gpu1/` });
    expect(http.url).toBe(`${url}/gpu1`);
    const ids = Int32Array.of(1, 2, 2_000_000_000);
    expect((await http.postJson('/v1/x', { prompt: ids, nested: [{ ids }], left: undefined })).body).toEqual({
      method: 'POST',
      path: '/gpu1/v1/x',
      body: '{"prompt":[1,2,2000000000],"nested":[{"ids":[1,2,2000000000]}]}',
      authorization: `Bearer ${KEY}`,
    });
    expect((await http.getJson('/a')).body).toMatchObject({ method: 'GET', body: '' });
  });

  it('may be empty, text where text was asked for, or another status that the caller takes', async () => {
    const { http } = await answering((request, response) => {
      response.statusCode = Number(request.url?.slice(1, 4));
      response.end(request.url?.slice(5));
    });
    expect(await http.getJson('/200/')).toMatchObject({ status: 200, body: null });
    expect(await http.text('GET', '/200/plain')).toMatchObject({ body: 'plain' });
    expect(await http.getJson('/404/gone', { accept: [404] })).toMatchObject({ status: 404, body: 'gone' });
    expect(await http.getJson('/503/%7B', { accept: [503] })).toMatchObject({ status: 503 });
    expect(await failure(http.getJson('/404/gone'))).toBeInstanceOf(NotFound);
  });

  it('may have something before it that is not the answer yet', async () => {
    const { http } = await answering(({ url }, response) => {
      response.writeProcessing();
      if (url === '/') response.end('{"a":1}');
      else setTimeout(() => response.destroy(), 20);
    });
    expect(await http.getJson('/')).toMatchObject({ status: 200, body: { a: 1 } });
    expect((await failure(http.getJson('/never'))).message).toContain('closed the connection before it answered');
  });

  it('comes over connections that stay open', async () => {
    const { http, server } = await answering(reply(200, {}));
    let connections = 0;
    server.on('connection', () => connections++);
    for (let k = 0; k < 5; k++) await http.getJson('/');
    // A request that follows at once may find the one before still being put away.
    expect(connections).toBeLessThanOrEqual(2);
  });

  it('comes over none that was idle for as long as a busy server may take to close it', async () => {
    const answered = new Map<unknown, number>();
    let late = 0;
    const { http, server } = await answering((request, response) => {
      const last = answered.get(request.socket);
      answered.set(request.socket, Date.now());
      if (last !== undefined && Date.now() - last > 2400) late++;
      reply(200, {})(request, response);
    });
    server.keepAliveTimeout = 60_000;
    for (let k = 0; k < 5; k++) await http.getJson('/');
    await sleep(2500);
    for (let k = 0; k < 5; k++) await http.getJson('/');
    expect(late).toBe(0);
  });

  it('comes also where the server closes every connection that it is asked on a second time', async () => {
    const used = new WeakSet<object>();
    let lost = 0;
    const { http } = await answering(({ method, url, socket }, response) => {
      if (used.has(socket)) lost++;
      if (used.has(socket)) return socket.destroy();
      used.add(socket);
      reply(200, { method, url })({} as IncomingMessage, response);
    });
    for (let round = 0; round < 5; round++) {
      const asked = Array.from({ length: 40 }, (_, k) => `/${round}/${k}`);
      const answers = await Promise.all(asked.map((path) => http.postJson(path, { path })));
      expect(answers.map(({ body }) => body)).toEqual(asked.map((url) => ({ method: 'POST', url })));
      // The connections are back among those that can be used again.
      await sleep(5);
    }
    expect(lost).toBeGreaterThan(40);
    const before = lost;
    for (let k = 0; k < 5; k++) expect((await http.postJson(`/load/${k}`, {}, { once: true })).status).toBe(200);
    expect(lost).toBe(before);
  });

  it('may be large', async () => {
    const large = { ids: Array.from({ length: 200_000 }, (_, k) => k), text: '🌊'.repeat(100_000) };
    const { http } = await answering(reply(200, large));
    expect((await http.getJson('/')).body).toEqual(large);
  });
});

describe('a request whose connection is closed before an answer', () => {
  const counting = async (end: (asked: number, request: IncomingMessage, response: ServerResponse) => unknown) => {
    let asked = 0;
    const { http, server } = await answering((request, response) => end(++asked, request, response));
    return { http, server, asked: () => asked };
  };

  it('is sent twice, and no third time', async () => {
    const { http, asked } = await counting((_, { socket }) => socket.destroy());
    const closed = await failure(http.postJson('/generate', {}));
    expect(closed.message).toContain('closed the connection before it answered POST /generate');
    expect(closed.details).toMatchObject({ retry: true, reached: true });
    expect(asked()).toBe(2);
  });

  it('may have reached a server that is gone by the second time', async () => {
    const { http, server, asked } = await counting((_, { socket }) => {
      server.close();
      socket.destroy();
    });
    const closed = await failure(http.postJson('/generate', {}));
    expect(closed.message).toContain('closed the connection before it answered POST /generate');
    expect(closed.details).toMatchObject({ retry: true, reached: true });
    expect(asked()).toBe(1);
  });

  it('has both tries within its limit, and is told the whole of it', async () => {
    const { http } = await counting((time, { socket }) => time === 1 && setTimeout(() => socket.destroy(), 600));
    const asked = performance.now();
    expect((await failure(http.getJson('/', { timeoutMs: 1000 }))).message).toContain('within 1 s');
    expect(performance.now() - asked).toBeLessThan(1500);
  });

  it('is sent once where that happens long after it was sent: it was not lost by chance', async () => {
    const { http, asked } = await counting((_, { socket }) => setTimeout(() => socket.destroy(), 5200));
    expect((await failure(http.getJson('/', { timeoutMs: null }))).message).toContain('closed the connection');
    expect(asked()).toBe(1);
  });

  it('is told that the client was closed, also in the second try', async () => {
    const { http } = await counting((time, { socket }) => (time === 1 ? socket.destroy() : http.close()));
    expect((await failure(http.getJson('/'))).details).toMatchObject({ retry: false, reached: false });
    expect((await failure(http.postJson('/', {}, { once: true }))).message).toContain('is closed here');
  });

  it('was not sent on an older connection, where once must do, also after one that was given up', async () => {
    const opened = new Map<unknown, number>();
    const ages: number[] = [];
    const { http, server } = await counting((_, { socket }) =>
      ages.push(performance.now() - (opened.get(socket) ?? 0)),
    );
    server.on('connection', (socket) => opened.set(socket, performance.now()));
    for (let k = 0; k < 2; k++) {
      await failure(http.postJson('/load', {}, { once: true, timeoutMs: 100 }));
      await sleep(900);
    }
    expect(ages.map((age) => age < 500)).toEqual([true, true]);
    expect(opened.size).toBe(2);
  });

  it('gets what the server says the second time', async () => {
    const { http } = await counting((time, request, response) =>
      time === 1 ? request.socket.destroy() : reply(429, { error: 'busy' })(request, response),
    );
    expect((await failure(http.getJson('/'))).details).toMatchObject({ status: 429, said: 'busy' });
  });

  it('is sent once where it must not be sent twice, where some of an answer came, and where it is stopped', async () => {
    const { http, asked } = await counting((_, { socket, url }, response) => {
      if (url === '/half') response.writeHead(200, { 'content-length': 10 }).write('{');
      if (url === '/stopped') stop.abort();
      setTimeout(() => socket.destroy(), 10);
    });
    const stop = new AbortController();
    expect((await failure(http.postJson('/load', {}, { once: true }))).details).toMatchObject({ reached: true });
    expect(asked()).toBe(1);
    expect((await failure(http.postJson('/half', {}))).message).toContain('broke off');
    expect(asked()).toBe(2);
    expect(await failure(http.postJson('/stopped', {}, { signal: stop.signal }))).toBeInstanceOf(Cancelled);
    expect(asked()).toBe(3);
  });
});

describe('an answer that would not fit into memory', () => {
  it.each([
    ['lists', `[${'[],'.repeat(4_000_000)}1]`],
    ['objects, one in another', `${'{"a":'.repeat(4_000_001)}1${'}'.repeat(4_000_001)}`],
    ['numbers', `[${'1,'.repeat(16_000_001)}1]`],
  ])('is refused before it is parsed: %s', async (_, body) => {
    const { http } = await answering(reply(200, body));
    const error = await failure(http.getJson('/v1/models'));
    expect(error).toBeInstanceOf(Invalid);
    expect(error.message).toMatch(/answered GET \/v1\/models with \d+ MiB that are not read: it has more values than/);
  });

  it('is told apart from one that is only nested deeply, whose words are shown as far as they can be', async () => {
    const nested = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const { http } = await answering(({ url }, response) =>
      reply(Number(url?.slice(1)), `{"detail":${nested}}`)({} as IncomingMessage, response),
    );
    expect((await http.getJson('/200')).status).toBe(200);
    expect((await failure(http.getJson('/400'))).message).toContain('with status 400: something nested too deeply');
  });
});

describe('the words of a server', () => {
  it.each([
    [{ error: { message: 'nested words', type: 'x' } }, 'nested words'],
    [{ object: 'error', message: 'flat words', code: 400 }, 'flat words'],
    [{ error: 'just words' }, 'just words'],
    [{ detail: 'detail words' }, 'detail words'],
    [{ detail: [{ loc: ['a'] }] }, '[{"loc":["a"]}]'],
    ['plain words', 'plain words'],
  ])('are found in %j', async (body, words) => {
    const { http, url } = await answering(reply(400, body));
    const error = await failure(http.postJson('/v1/completions', {}));
    expect(error).toBeInstanceOf(Invalid);
    expect(error.message).toBe(`The backend gpu (${url}) answered POST /v1/completions with status 400: ${words}`);
    expect(error.details).toMatchObject({ retry: false, reached: true, status: 400, said: words });
  });

  it.each([
    [401, Forbidden, false],
    [403, Forbidden, false],
    [404, NotFound, false],
    [405, Invalid, false],
    [413, Invalid, false],
    [422, Invalid, false],
    [408, Unavailable, true],
    [429, Unavailable, true],
    [500, Unavailable, false],
    [501, Unavailable, false],
    [502, Unavailable, true],
    [503, Unavailable, true],
    [504, Unavailable, true],
  ])('with status %i are %s', async (status, kind, retry) => {
    const { http, url } = await answering(reply(status, { error: { message: 'The words.' } }));
    const error = await failure(http.getJson('/v1/models'));
    expect(error).toBeInstanceOf(kind);
    expect(error.details).toMatchObject({ retry, status });
    for (const part of ['gpu', url, 'GET /v1/models', String(status), 'The words.'])
      expect(error.message).toContain(part);
  });

  it('are followed nowhere else', async () => {
    const { http } = await answering((_, response) => {
      response.writeHead(307, { location: 'https://elsewhere.example/v1?token=abc' }).end();
    });
    const error = await failure(http.getJson('/v1/models'));
    expect(error.message).toContain('sends GET /v1/models on to https://elsewhere.example/v1;');
  });

  it('never hold the key, however it is written back', async () => {
    for (const echo of [
      KEY,
      `no \u0000${KEY.slice(0, 5)}\u0000${KEY.slice(5)}`.replaceAll('\u0000', ''),
      `${KEY.slice(0, 5)}\u200b${KEY.slice(5)}`,
      KEY.toUpperCase(),
      encodeURIComponent(KEY),
      Buffer.from(KEY).toString('base64'),
    ])
      for (const body of [{ error: { message: `bad key ${echo}` } }, `raw ${JSON.stringify({ echo })}`, `<b>${echo}`]) {
        const { http } = await answering(reply(401, body));
        const error = await failure(http.getJson('/'));
        expect(error.message.toLowerCase()).not.toContain('secret');
        expect(error.message).toContain('[key]');
      }
    const { http } = await answering((_, response) => {
      response.writeHead(302, { location: `http://x.example/${encodeURIComponent(KEY)}` }).end();
    });
    expect((await failure(http.getJson('/'))).message).toContain('[key]');
  });

  it('never hold the control key either, which is sent to nobody', async () => {
    const echo = `bad signature by c0ntrol-hush, key ${KEY}`;
    const { http } = await answering(
      (request, response) => reply(500, { error: `${echo} ${JSON.stringify(request.headers)}` })(request, response),
      { controlKey: 'c0ntrol-hush' },
    );
    const error = await failure(http.postJson('/', {}, { headers: { 'x-signature': 'sha256=0' } }));
    expect(error.message).toContain('bad signature by [key], key [key]');
    expect(error.message).toContain('sha256=0');
    expect(error.message).not.toContain('hush');
  });

  it('are short, in one line, and harmless to a terminal and a page', async () => {
    const { http } = await answering(reply(500, { error: `\u001b[31mred\u0007\r\n\u202eabc ${'x'.repeat(1_000)}` }));
    const error = await failure(http.getJson('/'));
    expect(error.message).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(error.message).toContain(' [31mred abc xxx');
    expect(error.message).toMatch(/… \[\d+ more characters\]$/);
    expect(error.message.length).toBeLessThan(450);
  });

  it('cut at any place show no part of a key at the edge', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 4, maxLength: 40 }), fc.nat(200), (key, at) => {
        const redaction = new KeyRedaction(key);
        const text = redaction.withoutEdge(`${'.'.repeat(50)}${key}`.slice(0, at));
        expect(text.length).toBeLessThanOrEqual(50);
      }),
    );
  });

  it('of ten megabytes are read as far as is needed', async () => {
    let sent = 0;
    const { http } = await answering((_, response) => {
      response.writeHead(500, { 'content-type': 'text/plain' });
      const write = () => {
        while (sent < 10 * 2 ** 20) {
          sent += 2 ** 14;
          if (!response.write('x'.repeat(2 ** 14))) return response.once('drain', write);
        }
        response.end();
      };
      write();
    });
    const error = await failure(http.getJson('/'));
    expect(error.message).toContain('status 500: xxx');
    expect(error.message.length).toBeLessThan(450);
    await new Promise((later) => setTimeout(later, 50));
    expect(sent).toBeLessThan(10 * 2 ** 20);
  });
});

describe('a context that is too short', () => {
  it.each([
    [
      'vLLM',
      400,
      { error: { message: "This model's maximum context length is 4096 tokens. However, you requested 5000." } },
      4096,
    ],
    [
      'vLLM, newer',
      400,
      { error: { message: 'You passed 9 tokens; the context length is only 8 tokens.', param: 'input_tokens' } },
      8,
    ],
    [
      'vLLM, input',
      400,
      { error: { message: "Input length (9412) exceeds model's maximum context length (8192)." } },
      8192,
    ],
    ['vLLM, by its parameter', 400, { error: { message: 'Too much.', param: 'input_tokens' } }, null],
    [
      'SGLang',
      400,
      { error: { message: "The input (9412 tokens) is longer than the model's context length (8192 tokens)." } },
      8192,
    ],
    [
      'SGLang, with the answer',
      400,
      { message: "Requested token count exceeds the model's maximum context length of 8192 tokens." },
      8192,
    ],
    [
      'TensorRT-LLM',
      400,
      { error: 'The sum of prompt length (9412.0) and max_tokens should not exceed max_seq_len (8192)' },
      8192,
    ],
    [
      'llama-server',
      400,
      { error: { type: 'exceed_context_size_error', message: 'x', n_prompt_tokens: 9412, n_ctx: 8192 } },
      8192,
    ],
    [
      'llama-server, by words',
      500,
      {
        error: { message: 'request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it' },
      },
      8192,
    ],
  ])('is recognised as %s says it', async (_, status, body, contextLength) => {
    const { http } = await answering(reply(status, body));
    const error = await failure(http.postJson('/generate', {}));
    expect(error).toBeInstanceOf(Invalid);
    expect(error.details).toMatchObject({ contextOverflow: { contextLength }, retry: false });
    expect(error.message).toContain('does not fit the context');
    if (contextLength) expect(error.message).toContain(`of ${contextLength} tokens`);
  });

  it('is not seen in other refusals', () => {
    for (const text of ['The model `x` does not exist.', 'temperature must be at most 2', 'Failed to parse grammar'])
      expect(contextOverflow(400, { error: { message: text } }, '')).toBeNull();
    expect(contextOverflow(503, { error: { type: 'exceed_context_size_error' } }, '')).toBeNull();
    expect(serverMessage(['a'], '["a"]')).toBe('["a"]');
  });
});

describe('what is no inference server', () => {
  it('is said of a web page, of other text, and of a service that does not speak HTTP', async () => {
    for (const [body, says] of [
      ['<!doctype html><title>Router login</title>', 'a web page: <!doctype html><title>Router login'],
      ['hello there', 'something that is no JSON'],
      ['{"logprob": nan}', 'something that is no JSON'],
    ] as const) {
      const { http, url } = await answering(reply(200, body));
      const error = await failure(http.getJson('/v1/models'));
      expect(error).toBeInstanceOf(Invalid);
      expect(error.message).toContain(
        `The backend gpu (${url}) is no inference server: it answered GET /v1/models with`,
      );
      expect(error.message).toContain(says);
    }
    const port = await listen(
      createSocketServer((socket) => {
        socket.on('error', () => {});
        socket.on('end', () => socket.destroy()).resume();
        socket.write(`SSH-2.0-OpenSSH ${KEY}\r\n`);
      }),
    );
    const error = await failure(client({ url: `http://127.0.0.1:${port}` }).getJson('/'));
    expect(error).toBeInstanceOf(Invalid);
    expect(error.message).toContain('is no HTTP');
  });
});

describe('an answer with a word in place of a number', () => {
  it.each(['NaN', 'Infinity', '-Infinity'])('is refused, and the word is told: %s', async (word) => {
    const filler = 'Infinity, NaN '.repeat(40);
    const { http, url } = await answering(
      reply(200, `{"said": "${filler}", "logprobs": [-0.5,\n${word}], "NaN": "${filler}"}`),
    );
    const error = await failure(http.postJson('/generate', {}));
    expect(error).toBeInstanceOf(Invalid);
    expect(error.message).toContain(
      `The backend gpu (${url}) answered POST /generate with ${word} in place of a number; nothing of it is used.`,
    );
    expect(error.details).toMatchObject({ retry: false, reached: true });
  });

  it('is one that broke off where both are so', async () => {
    const { http } = await answering(reply(200, '{"logprobs": [NaN, -0.'));
    expect((await failure(http.getJson('/'))).message).toContain('broke off in the middle');
  });

  it.each(['{"said": "NaN", "rank": NaNs, "x": Infinity.0}', '{NaN:1}', '{"a":1}NaN', '{"a":1,NaN:2}'])(
    'is one that is no JSON where the word stands in a string, is part of another or a name: %s',
    async (body) => {
      const { http } = await answering(reply(200, body));
      expect((await failure(http.getJson('/'))).message).toContain('something that is no JSON');
    },
  );
});

describe('an answer that breaks off', () => {
  const half = '{"choices":[{"token_ids":[1,2,3],"text":"a\\"}]}';
  it.each([
    [
      'before its stated length',
      (response: ServerResponse) => {
        response.writeHead(200, { 'content-length': '500' });
        response.write(half, () => response.destroy());
      },
    ],
    [
      'between two chunks',
      (response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write(half, () => response.destroy());
      },
    ],
    ['without saying so', (response: ServerResponse) => response.end(half)],
    [
      'at the end of a connection that says no length',
      (response: ServerResponse) => {
        response.socket?.end(`HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${half}`);
      },
    ],
  ])('%s is a failure', async (_, cut) => {
    const { http } = await answering((__, response) => void cut(response));
    const error = await failure(http.postJson('/generate', {}));
    expect(error).toBeInstanceOf(Unavailable);
    expect(error.message).toContain('broke off in the middle of its answer to POST /generate; nothing of it is used.');
    expect(error.details).toMatchObject({ retry: true, reached: true });
  });

  it('is one of text too, where the connection tells', async () => {
    for (const length of ['500', undefined]) {
      const { http } = await answering((_, response) => {
        response.writeHead(200, { 'content-type': 'text/plain', ...(length && { 'content-length': length }) });
        response.write('running 1\nwaiting', () => response.destroy());
      });
      const error = await failure(http.text('GET', '/metrics'));
      expect(error.message).toContain('broke off in the middle of its answer to GET /metrics');
      expect(error.details).toMatchObject({ retry: true, reached: true });
    }
  });

  it('is told by its status where that is an error', async () => {
    const { http } = await answering((_, response) => {
      response.writeHead(429, { 'content-length': '500' });
      response.write('slow down', () => response.destroy());
    });
    expect((await failure(http.getJson('/'))).details).toMatchObject({ status: 429, retry: true });
  });
});

describe('a server that is not there', () => {
  it('is told by its port, its name, its connections', async () => {
    const port = await listen(createSocketServer());
    await toClose.pop()?.();
    const refused = await failure(client({ url: `http://127.0.0.1:${port}` }).getJson('/'));
    expect(refused.message).toContain(`The backend gpu (http://127.0.0.1:${port}) refused the connection`);
    expect(refused.details).toMatchObject({ retry: true, reached: false });
    const unknown = await failure(client({ url: 'http://no-such-host.invalid:8000' }).getJson('/'));
    expect(unknown.message).toContain('its host name has no address here');
    expect(unknown).toBeInstanceOf(Unavailable);
    const resetting = await listen(createSocketServer((socket) => socket.once('data', () => socket.resetAndDestroy())));
    const reset = await failure(client({ url: `http://127.0.0.1:${resetting}` }).getJson('/'));
    expect(reset.message).toContain('closed the connection before it answered GET /');
    expect(reset.details).toMatchObject({ retry: true, reached: true });
  });

  it('does not answer in time', async () => {
    const { http } = await answering(() => {});
    const error = await failure(http.getJson('/health', { timeoutMs: 20 }));
    expect(error).toBeInstanceOf(Unavailable);
    expect(error.message).toContain('did not answer GET /health within 0.02 s');
    expect(error.details).toMatchObject({ retry: true, reached: true });
  });

  it('has a certificate that nobody vouches for, or no TLS at all', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'certificate-'));
    toClose.push(() => rmSync(folder, { recursive: true }));
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const wanted = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=127.0.0.1'];
    execFileSync('openssl', ['req', ...wanted, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    const tls = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, reply(200, {}));
    const port = await listen(tls);
    const untrusted = await failure(client({ url: `https://127.0.0.1:${port}` }).getJson('/'));
    expect(untrusted).toBeInstanceOf(Unavailable);
    expect(untrusted.message).toContain('has a certificate that is not trusted here (DEPTH_ZERO_SELF_SIGNED_CERT)');
    const { url } = await answering(reply(200, {}));
    const plain = await failure(client({ url: url.replace('http:', 'https:') }).getJson('/'));
    expect(plain.message).toContain('does not speak TLS at that port');
  });
});

describe('a request that is stopped', () => {
  it('ends at once with the reason, before, during and while it waits for a connection', async () => {
    const open: ServerResponse[] = [];
    const paths: (string | undefined)[] = [];
    const hold: RequestListener = ({ url }, response) => {
      paths.push(url);
      if (url === '/last') response.end('{}');
      else open.push(response);
    };
    const { http } = await answering(hold, { connections: 1 });
    expect(await failure(http.getJson('/', { signal: AbortSignal.abort() }))).toBeInstanceOf(Cancelled);
    const stop = new AbortController();
    const running = failure(http.postJson('/generate', {}, { signal: stop.signal, timeoutMs: null }));
    while (open.length === 0) await new Promise((later) => setTimeout(later, 2));
    const queued = new AbortController();
    const waiting = failure(http.postJson('/second', {}, { signal: queued.signal, timeoutMs: null }));
    queued.abort();
    expect(await waiting).toBeInstanceOf(Cancelled);
    const closed = new Promise((done) => open[0]?.once('close', () => done('closed')));
    stop.abort(new TimedOut('Late.'));
    expect(await running).toBeInstanceOf(TimedOut);
    // The server is told: its connection is closed.
    expect(await closed).toBe('closed');
    await http.getJson('/last');
    expect(paths).toEqual(['/generate', '/last']);
  });

  it('is told so when the client closes', async () => {
    const { http } = await answering(() => {});
    const running = failure(http.getJson('/', { timeoutMs: null }));
    await new Promise((later) => setTimeout(later, 20));
    await http.close();
    expect((await running).details).toMatchObject({ retry: false });
    expect((await failure(http.getJson('/'))).message).toContain('is closed here');
  });
});

describe('an address or key that cannot be used', () => {
  it.each(['localhost:8000', 'htp://host', 'not an address', '', 'http://'])('%j is refused in a sentence', (url) => {
    expect(() => createHttpClient({ backend: 'gpu', url })).toThrow(
      /of the backend gpu is none of a server: write it as http/,
    );
    // A server that is being looked at belongs to no backend.
    const sentence = `The address ${JSON.stringify(url)} is none of a server: write it as http`;
    expect(() => createHttpClient({ backend: null, url })).toThrow(sentence);
  });

  it('is called by its address alone while it belongs to no backend', async () => {
    const { url } = await answering(reply(500, { error: 'no' }), { backend: null });
    const http = client({ backend: null, url });
    expect((await failure(http.getJson('/x'))).message).toMatch(new RegExp(`^The server at ${url} failed`));
    expect((await failure(client({ url }).getJson('/x'))).message).toMatch(/^The backend gpu \(http/);
  });

  it('shows nothing that may be a secret', () => {
    for (const url of [
      'http://user:hunter2@host',
      'http://host/?token=hunter2',
      'http://host/#hunter2',
      'ftp://u:hunter2@host',
    ])
      expect(() => createHttpClient({ backend: 'gpu', url })).toThrow(
        expect.not.objectContaining({ message: expect.stringContaining('hunter2') }),
      );
    for (const key of ['hunter2\n', 'hunter2\u0007', 'hünter2', 'hunter2 ', '🔑hunter2'])
      try {
        createHttpClient({ backend: 'gpu', url: 'http://host', key });
        expect.unreachable();
      } catch (error) {
        expect(error).toBeInstanceOf(Invalid);
        expect((error as Error).message).toContain('The key of the backend gpu cannot be sent');
        expect((error as Error).message).not.toContain('nter2');
      }
  });
});

describe('a request body', () => {
  it('is the JSON it would be with plain arrays', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.int32Array(), (value, ids) => {
        expect(writeJson(value)).toBe(JSON.stringify(value));
        const body = { a: value, ids, list: [{ ids }], none: undefined };
        expect(writeJson(body)).toBe(JSON.stringify({ a: value, ids: [...ids], list: [{ ids: [...ids] }] }));
      }),
    );
  });
});
