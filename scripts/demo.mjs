/** `npm run demo`: `npm start` plus one sample run, with its progress in the terminal and a link to the result. */
import { prepare } from './setup.mjs';
import { runWithStudio } from './with-studio.mjs';

await prepare();
await runWithStudio([
  'rollout',
  '--skill',
  'tutorial',
  '--dataset',
  'tutorial',
  '--tasks',
  '16',
  '--group-size',
  '8',
  '--json',
]);
