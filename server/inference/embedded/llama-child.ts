/** Entry of the model process, forked by the embedded backend: a crash in native code ends this process only. */

import { ModelService } from './model-service';
import type { ToChild } from './protocol';

const service = new ModelService((message) => {
  if (process.connected) process.send?.(message);
});

process.on('message', (message: ToChild) => service.receive(message));
// The server is gone: nobody is left to generate for.
process.on('disconnect', () => process.exit(0));
// Ctrl-C reaches the whole process group; the server decides when this process ends.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
