/**
 * `npm test`, after the check: every test file, two at a time, those that take longest first, so that no long one is left
 * alone at the end. `--under DIR` takes one folder of them. (`node --test` would take the files by name.)
 */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';

/** Longest first, as measured; a file that is not here takes less than any of these. */
const slow = [
  'test/slurm/accounts.test.ts',
  'test/slurm/interruptions.test.ts',
  'test/slurm/e2e.test.ts',
  'test/slurm/restarts.test.ts',
  'test/slurm/bad-days.test.ts',
  'test/slurm/configuration.test.ts',
  'test/slurm/left-hosts.test.ts',
  'test/slurm/ready.test.ts',
  'test/slurm/found.test.ts',
  'test/slurm/per-user.test.ts',
  'test/build/executable.test.ts',
  'test/e2e/admin.test.ts',
  'test/docs/walk.test.ts',
  'test/cli/everyday/usage.test.ts',
  'test/cli/auth.test.ts',
  'test/cli/hostile-server.test.ts',
  'test/e2e/operator.test.ts',
  'test/cli/credential-store.test.ts',
  'test/cli/everyday/ssh.test.ts',
  'test/gateway/access.test.ts',
  'test/cli/program.test.ts',
  'test/platform/scheduler-configuration.test.ts',
  'test/cli/call.test.ts',
  'test/e2e/walk.test.ts',
  'test/e2e/client.test.ts',
  'test/cli/everyday/files.test.ts',
  'test/e2e/serve.test.ts',
];

const root = join(import.meta.dirname, '..');
const { values } = parseArgs({ options: { under: { type: 'string', default: 'test' } } });
const found = globSync(`${values.under}/**/*.test.ts`, { cwd: root }).sort();
const gone = slow.filter((file) => values.under === 'test' && !found.includes(file));
if (gone.length > 0)
  throw new Error(`${gone.join(', ')} is not there any more: mend the list in scripts/test.ts`);
const files = [
  ...slow.filter((file) => found.includes(file)),
  ...found.filter((file) => !slow.includes(file)),
];

const tests = run({
  files: files.map((file) => join(root, file)),
  concurrency: 2,
  execArgv: ['--test-timeout=240000', `--import=${join(root, 'test/support/ends.ts')}`],
});
tests.on('test:fail', () => {
  process.exitCode = 1;
});
tests.compose(new spec()).pipe(process.stdout);
