/** Run at the end of a build, so that the first start copies an empty database instead of making one. */
import { prepareTemplate } from './prepare-folder';

await prepareTemplate();
