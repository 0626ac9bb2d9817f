/** `andromeda service ready`, which containers ask for a service's health. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { runProgram } from '../support/program.ts';

test('service ready ends with 0 where the service of the configuration serves, and says that it does not', async () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'andromeda.yaml');
  const [free = 0] = await freePorts(1);
  const ask = async (url: string) => {
    const at = { listen: new URL(url).host, url };
    const other = { listen: '127.0.0.1:1', url: 'http://127.0.0.1:1' };
    const config = { dataDir: './data', platform: other, business: at, gateway: { listen: '127.0.0.1:2' } };
    writeFileSync(file, JSON.stringify({ ...config, identity: { issuer: 'http://127.0.0.1:3' } }));
    const { status, out, err } = await runProgram('service', 'ready', '--config', file);
    return `${status} ${out}${err}`;
  };
  {
    await using app = await startTestApp();
    assert.equal(await ask(app.businessUrl), '0 The service serves.\n');
  }
  const nobody = `1 andromeda: No service of ours answers at 127.0.0.1:${free}.\n`;
  assert.equal(await ask(`http://127.0.0.1:${free}`), nobody);
});
