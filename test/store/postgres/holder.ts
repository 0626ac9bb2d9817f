/** A server that adds one to a counter, and says so in the middle of the write: `node holder.ts DATADIR URL`. */
import { setTimeout as wait } from 'node:timers/promises';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import { updateRows } from '../../../src/store/engine/rows.ts';

const [dataDir = '', database = ''] = process.argv.slice(2);
const store = await openStore(dataDir, { database });
await store.write(async ({ db }) => {
  const { value } = await db.selectFrom('counters').select('value').executeTakeFirstOrThrow();
  await updateRows(db, 'counters', {}, { value: value + 1 });
  process.stdout.write('writing\n');
  // Time enough to be stopped in.
  await wait(2_000);
});
await store.close();
