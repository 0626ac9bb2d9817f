/** What `service rollback` finds out while the service runs, before it stops anything. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { AuditEntry } from '../../src/domain/audit/audit.ts';
import type { SchemaState } from '../../src/service/host/unit/schema-process.ts';
import { lossOf, requireNothingDone } from '../../src/service/host/unit/upgrade.ts';
import { appendAuditEntry } from '../../src/store/audit/audit.ts';
import { copyOf, listWrittenSince } from '../../src/store/data-dir/before-upgrade.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { systemUserId } from '../../src/store/people/people.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { runProgram } from '../support/program.ts';
import { laterVersion, placeSchema, newest as schema } from '../support/schemas.ts';

test('a copy that cannot be read or is not whole, and a disk without room for it, refuse the way back while the service runs', {
  skip: process.getuid?.() !== 0 && 'needs root',
}, async () => {
  using directory = temporaryDirectory();
  const dataDir = join(directory.path, 'data');
  execFileSync('mkdir', [dataDir]);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256m', 'tmpfs', dataDir]);
  try {
    placeSchema(dataDir, schema);
    await using _serving = await openUpgraded(dataDir);
    const config = join(directory.path, 'andromeda.yaml');
    writeFileSync(config, JSON.stringify({ dataDir: './data' }));
    const inspect = async (): Promise<{ answer?: SchemaState; refusal?: string }> => {
      const { out, err } = await runProgram('schema-process', config, 'inspect', schema);
      return JSON.parse(out || JSON.stringify({ refusal: err }));
    };
    const copy = copyOf(dataDir, schema);

    const { answer } = await inspect();
    assert.ok(answer?.written);
    assert.equal(lossOf({ version: '0.2.0', schema }, answer), answer.written);

    chmodSync(directory.path, 0o711);
    execFileSync('chown', ['-R', '65534:65534', dataDir]);
    chownSync(copy, 0, 0);
    const unreadable = { refusal: `${copy} cannot be read: EACCES. Nothing was changed.` };
    assert.deepEqual(await inspect(), unreadable);
    chownSync(copy, 65534, 65534);
    chownSync(dirname(copy), 0, 0);
    assert.deepEqual(await inspect(), unreadable);
    chownSync(dirname(copy), 65534, 65534);

    execFileSync('mount', ['-o', 'remount,size=64m', dataDir]);
    assert.match(
      (await inspect()).refusal ?? '',
      /^The disk of .* has \d+ MiB left, and 1\d\d MiB are needed\. Make room\. Nothing was changed\.$/,
    );
    execFileSync('mount', ['-o', 'remount,size=256m', dataDir]);
    for (const [size, fault] of [
      [70_000, 'is damaged; take another backup.'],
      [0, 'is not a backup of Andromeda.'],
    ] as const) {
      truncateSync(copy, size);
      assert.deepEqual(await inspect(), { refusal: `${copy} ${fault} Nothing was changed.` });
    }
    rmSync(copy);
    const gone = (await inspect()).answer;
    assert.ok(gone);
    assert.throws(
      () => lossOf({ version: '0.2.0', schema }, gone),
      /the copy of before is gone from before-upgrade\/\. Nothing was changed\.$/,
    );
  } finally {
    execFileSync('umount', ['-l', dataDir]);
  }
});

async function openUpgraded(dataDir: string) {
  const store = await openStore(dataDir, { schema: laterVersion });
  return { store, [Symbol.asyncDispose]: () => store.close() };
}

test('what the service writes by itself, and refusals, keep no failed upgrade in place; what people did does', async () => {
  using directory = temporaryDirectory();
  placeSchema(directory.path, schema);
  await using serving = await openUpgraded(directory.path);
  const write = (operation: string, result = 'done') =>
    serving.store.write((tx) => {
      const entry: AuditEntry = { actorUserId: systemUserId, operation, target: '', reason: '', result };
      return appendAuditEntry(tx, entry);
    });
  for (const operation of ['ssh.session.opened', 'ssh.session.closed', 'deleteAuditEntries'])
    await write(operation);
  await write('ssh.login.refused', 'refused: key_revoked');
  await write('revokeSshKey', 'refused: forbidden');
  await write('furtherRefusals', 'refused');
  const byItself = listWrittenSince(directory.path, schema);
  assert.equal(byItself.entries.length, 6);
  requireNothingDone(byItself);
  await write('revokeSshKey');
  assert.throws(
    () => requireNothingDone(listWrittenSince(directory.path, schema)),
    /^DomainError: The audit trail has entries of what people did since the database was changed\./,
  );
});
