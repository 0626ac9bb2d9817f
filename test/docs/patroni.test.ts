/** docs/scale/patroni.yaml by Patroni's own check; that it fails over is in patroni.full.test.ts. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

const example = (name: string) => join(import.meta.dirname, '../../docs/scale', name);
const skip = spawnSync('patroni', ['--version']).status !== 0 && 'patroni is not installed';

test('Patroni finds nothing wrong in the documented file but what the machines of the page have', {
  skip,
}, () => {
  const { stdout, stderr } = spawnSync('patroni', ['--validate-config', example('patroni.yaml')], {
    encoding: 'utf8',
  });
  const faults = `${stdout}${stderr}`.split('\n').filter((line) => line !== '');
  // It says so of addresses that this machine does not have; and it does not look under postgresql for pg_hba.
  const expected = /listen 10\.20\.0\.21:\d+ didn't pass|bootstrap\.pg_hba {2}is not defined/;
  assert.deepEqual(
    faults.filter((line) => !expected.test(line)),
    [],
  );
  assert.equal(faults.length, 3);
});
