/** Opens the store of a data directory, which brings it to this version, and closes it. */
import { openStore } from '../../src/store/data-dir/open-store.ts';

const [dataDir = ''] = process.argv.slice(2);
await (await openStore(dataDir)).close();
