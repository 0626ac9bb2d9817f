/** Test files of one folder in one process, one after the other: what they all load is loaded once. */
import { join } from 'node:path';
import { describe } from 'node:test';

for (const file of process.argv.slice(2)) {
  // Its hooks are its own, as they would not be with `--test-isolation=none`.
  describe(file, async () => {
    await import(join(process.cwd(), file));
  });
}
