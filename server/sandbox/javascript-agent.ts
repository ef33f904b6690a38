/**
 * The program that answers javascript requests, as text: it runs where neither this code nor node_modules exists
 * (inside bubblewrap), or in a worker thread that only knows what it is handed. `javascript-program.ts` puts the
 * QuickJS engine in front of it.
 *
 * In scope: `engine` (quickjs-emscripten-core), `variant` (its WebAssembly build), `require` of Node.
 * Every call gets an instance of the engine of its own, so nothing one call does is there for the next.
 *
 * Requests: {source, args, env, timeoutMs, memoryBytes, stackBytes, outputBytes}; args and env are JSON text.
 * Replies: {status, valueText, stdout, stderr, droppedBytes}, valueText the JSON text of what main returned.
 */
export const javascriptAgentSource = String.raw`
const PAGE = 65536;
const START_PAGES = 256;

// Runs inside the engine. JSON is taken before the tool's source can replace it.
const HARNESS = [
  '(() => {',
  '  const { parse, stringify } = JSON;',
  '  return (args, env) => {',
  "    if (typeof main !== 'function') throw new TypeError('The source defines no function main(args, env).');",
  '    return Promise.resolve(main(parse(args), parse(env))).then((value) => {',
  '      const text = stringify(value === undefined ? null : value);',
  "      if (typeof text !== 'string') throw new TypeError('main returned a ' + typeof value + ', which JSON cannot hold.');",
  '      return text;',
  '    });',
  '  };',
  '})()',
].join('\n');

function makeOutput(limit) {
  const parts = { stdout: [], stderr: [] };
  let used = 0;
  let dropped = 0;
  return {
    write(stream, text) {
      const size = Buffer.byteLength(text);
      if (used + size > limit) {
        dropped += size;
        return;
      }
      used += size;
      parts[stream].push(text);
    },
    text: (stream) => parts[stream].join(''),
    dropped: () => dropped,
  };
}

function describe(error) {
  if (error === null || typeof error !== 'object') return String(error);
  const head = (error.name || 'Error') + ': ' + (error.message === undefined ? JSON.stringify(error) : error.message);
  const stack = typeof error.stack === 'string' ? error.stack.trimEnd() : '';
  return stack ? head + '\n' + stack : head;
}

function installConsole(context, output) {
  const print = (stream) => (...handles) => {
    const words = handles.map((handle) => {
      if (context.typeof(handle) === 'string') return context.getString(handle);
      const value = context.dump(handle);
      return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
    });
    output.write(stream, words.join(' ') + '\n');
  };
  const consoleHandle = context.newObject();
  for (const [name, stream] of [['log', 'stdout'], ['info', 'stdout'], ['debug', 'stdout'], ['warn', 'stderr'], ['error', 'stderr']]) {
    const fn = context.newFunction(name, print(stream));
    context.setProp(consoleHandle, name, fn);
  }
  context.setProp(context.global, 'console', consoleHandle);
}

async function runJavascript(wasmModule, request) {
  const output = makeOutput(request.outputBytes);
  const end = (status, valueText, problem) => {
    if (problem) output.write('stderr', problem + '\n');
    return { status, valueText, stdout: output.text('stdout'), stderr: output.text('stderr'), droppedBytes: output.dropped() };
  };
  const deadline = performance.now() + request.timeoutMs;
  const expired = () => performance.now() >= deadline;
  const limit = 'The program ran past its limit of ' + request.timeoutMs + ' ms and was stopped.';
  try {
    // The engine keeps its own books (memoryBytes); the hard maximum leaves room for the engine itself.
    const wasmMemory = new WebAssembly.Memory({ initial: START_PAGES, maximum: START_PAGES + Math.ceil(request.memoryBytes / PAGE) });
    const quickjs = await engine.newQuickJSWASMModuleFromVariant(engine.newVariant(variant, { wasmModule, wasmMemory }));
    const runtime = quickjs.newRuntime();
    runtime.setMemoryLimit(request.memoryBytes);
    runtime.setMaxStackSize(request.stackBytes);
    runtime.setInterruptHandler(expired);
    const context = runtime.newContext();
    installConsole(context, output);
    // The failure of a call: past the deadline it is the deadline, whatever words the engine used for it.
    const failed = (handle) => (expired() ? end('timeout', null, limit) : end('error', null, describe(context.dump(handle))));

    const harness = context.unwrapResult(context.evalCode(HARNESS, 'harness.js'));
    const loaded = context.evalCode(request.source, 'tool.js', { type: 'global' });
    if (loaded.error) return failed(loaded.error);
    const called = context.callFunction(harness, context.undefined, context.newString(request.args), context.newString(request.env));
    if (called.error) return failed(called.error);
    for (;;) {
      const state = context.getPromiseState(called.value);
      if (state.type === 'fulfilled') return end('success', context.getString(state.value), null);
      if (state.type === 'rejected') return failed(state.error);
      if (expired()) return end('timeout', null, limit);
      if (!runtime.hasPendingJob())
        return end('timeout', null, 'The promise that main returned can never settle: nothing is left to run that could settle it.');
      const jobs = runtime.executePendingJobs(1000);
      if (jobs.error) return failed(jobs.error);
    }
  } catch (error) {
    if (expired()) return end('timeout', null, limit);
    return end('error', null, 'The engine stopped: ' + (error && error.message ? error.message : String(error)));
  }
}

const { parentPort, workerData, isMainThread } = require('node:worker_threads');
if (!isMainThread && workerData && workerData.wasmModule) {
  parentPort.on('message', async ({ id, request }) => {
    parentPort.postMessage({ id, reply: await runJavascript(workerData.wasmModule, request) });
  });
  parentPort.postMessage({ ready: true });
} else {
  // Frames in: length (4 bytes, big-endian), JSON. Frames out: type (1 byte), length (4 bytes), payload.
  const send = (type, payload) => {
    const head = Buffer.alloc(5);
    head.write(type, 0, 'latin1');
    head.writeUInt32BE(payload.length, 1);
    process.stdout.write(head);
    process.stdout.write(payload);
  };
  const wasmModule = new WebAssembly.Module(require('node:fs').readFileSync(process.argv[2]));
  let pending = Buffer.alloc(0);
  let queue = Promise.resolve();
  process.stdin.on('data', (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 4 && pending.length >= 4 + pending.readUInt32BE(0)) {
      const size = pending.readUInt32BE(0);
      const request = JSON.parse(pending.toString('utf8', 4, 4 + size));
      pending = pending.subarray(4 + size);
      queue = queue.then(async () => {
        const { stdout, stderr, ...rest } = await runJavascript(wasmModule, request);
        if (stdout) send('O', Buffer.from(stdout));
        if (stderr) send('E', Buffer.from(stderr));
        send('X', Buffer.from(JSON.stringify({ ...rest, exitCode: null })));
      });
    }
  });
  process.stdin.on('end', () => process.exit(0));
  send('R', Buffer.alloc(0));
}
`;
