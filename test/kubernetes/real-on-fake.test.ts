/** The test of a real API server runs, as it is, against the fake one: so that it works on the day when there is one. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { temporaryDirectory } from '../support/directory.ts';
import { startFakeApi } from './fake-api.ts';

test('the test of a real API server passes with a kubeconfig, and says that it was skipped without one', async () => {
  await using api = await startFakeApi();
  using directory = temporaryDirectory();
  const file = join(directory.path, 'kubeconfig');
  const name = 'fake';
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name,
        cluster: {
          server: api.url,
          'certificate-authority-data': Buffer.from(api.authority.ca).toString('base64'),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
    users: [{ name, user: { token: 'admin' } }],
  };
  writeFileSync(file, stringify(kubeconfig), { mode: 0o600 });
  const run = async (more: Record<string, string>) => {
    const { ANDROMEDA_TEST_KUBECONFIG: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
    const real = join(import.meta.dirname, 'real.ts');
    const { stdout } = await promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap', real], {
      env: { ...env, ...more },
    });
    return stdout;
  };
  const tried = await run({ ANDROMEDA_TEST_KUBECONFIG: file });
  assert.match(tried, /^# fail 0$/m);
  assert.match(tried, /ok 1 - a real API server$/m);
  assert.match(tried, /ok \d+ - 1,000 grants, and one more/);
  assert.equal(api.bindings.all.size, 0, 'what it made is gone');
  assert.match(await run({}), /ok 1 - a real API server # SKIP/);
});
