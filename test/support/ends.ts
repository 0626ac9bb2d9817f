/**
 * Loaded into every test file's process: one that is still there long after its last test fails, and says what keeps it.
 * At its end it notes what the processors did for it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { after } from 'node:test';

const graceMs = 30_000;

after(() => {
  setTimeout(() => {
    const kept = process.getActiveResourcesInfo().join(', ');
    console.error(`${process.argv[1]} does not end by itself; what it left open: ${kept}`);
    process.exit(1);
  }, graceMs).unref();
});

const cpuFile = process.env['ANDROMEDA_TEST_CPU'];
// Its children have it in their environment too, and are counted with this one.
delete process.env['ANDROMEDA_TEST_CPU'];
const ticksPerSecond = 100;

process.once('exit', () => {
  if (cpuFile === undefined) return;
  // proc_pid_stat(5): utime, stime, cutime and cstime, behind a name that may have spaces in it.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  writeFileSync(cpuFile, `${ticks / ticksPerSecond}`);
});
