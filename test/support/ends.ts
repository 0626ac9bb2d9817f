/** Loaded into every test file's process: one that is still there long after its last test fails, and says what keeps it. */
import { after } from 'node:test';

const graceMs = 30_000;

after(() => {
  setTimeout(() => {
    const kept = process.getActiveResourcesInfo().join(', ');
    console.error(`${process.argv[1]} does not end by itself; what it left open: ${kept}`);
    process.exit(1);
  }, graceMs).unref();
});
