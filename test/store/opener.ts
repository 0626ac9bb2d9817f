/** Opens the store of a data directory as a later version does, which brings it to its schema, and closes it. */
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { laterVersion } from '../support/schemas.ts';

const [dataDir = ''] = process.argv.slice(2);
await (await openStore(dataDir, { schema: laterVersion })).close();
