/** Keys that the service used and that are gone: it makes no others in their place before an operator on the host accepts that. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { serviceSecrets } from '../../src/domain/key-rotation.ts';
import { createLogger } from '../../src/lib/log.ts';
import { startApp } from '../../src/service/compose/index.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { listMissingKeys, missingKeyText, noteKeys } from '../../src/store/data-dir/key-files.ts';
import { startTestApp } from '../support/app.ts';
import { freePorts } from '../support/ports.ts';
import { runProgram } from '../support/program.ts';
import { serve } from '../support/service-process.ts';
import { openTestStore, testOnFile } from '../support/store.ts';

const sentence = (file: string) => `The key ${file}, which the service used, is missing; with a new one, `;

testOnFile(
  'a service whose key is gone does not start, says what to do, and starts with a new one that was accepted',
  async () => {
    const [issuer] = await freePorts(1);
    const embedded = { listen: `127.0.0.1:${issuer}` };
    await using app = await startTestApp({ identity: { issuer: undefined, embedded } });
    await app.app[Symbol.asyncDispose]();
    const dataDir = join(app.dataDir, 'data');
    const config = join(app.dataDir, 'andromeda.yaml');

    async function run(...args: string[]) {
      const { status, out, err } = await runProgram(...args, '--config', config);
      return { status, said: out + err };
    }

    /** By the service, and by commands. */
    async function isRefused(sentence: string, commands = ['check']) {
      const started = startApp({ config: readConfig(config), log: createLogger('silent') });
      await assert.rejects(started, ({ message }: Error) => message.includes(sentence));
      for (const command of commands) {
        const { status, said } = await run(command, '--quiet');
        assert.deepEqual([status, said.includes(sentence)], [1, true], `${command}: ${said}`);
      }
    }

    async function endsWith78(sentence: string) {
      await using service = serve(config);
      assert.deepEqual([await service.ended, service.log().includes(sentence)], [78, true], service.log());
    }

    const listed = JSON.parse((await run('admin', 'key', 'list', '--json')).said).keys;
    const idOf = (one: { kind: string; in: string; used: { id: string } }) => [one.kind, one.in];
    assert.deepEqual(
      listed.map(idOf),
      Object.entries(serviceSecrets).map(([kind, { file }]) => [kind, join(dataDir, file)]),
    );
    assert.match(listed[0].used.id, /^SHA256:/);
    const checked = JSON.parse((await run('check', '--json')).said).findings;
    assert.ok(checked.some(({ about }: { about: string }) => about === 'key'));

    const spoilt: Record<string, (file: string) => void> = {
      empty: (file) => writeFileSync(file, ''),
      cut: (file) => writeFileSync(file, readFileSync(`${file}.away`, 'utf8').slice(0, 60)),
      // The gateway has Ed25519 keys, and nothing else of ours has those of RSA.
      'of another type': (file) => {
        execFileSync('ssh-keygen', ['-q', '-t', 'rsa', '-N', '', '-f', file]);
        rmSync(`${file}.pub`);
      },
      // As one that this account may not read.
      unreadable: (file) => mkdirSync(file),
    };
    for (const kind of ['host', 'client', 'issuer', 'audit'] as const) {
      const file = join(dataDir, serviceSecrets[kind].file);
      renameSync(file, `${file}.away`);
      await isRefused(sentence(file));
      assert.ok(!existsSync(file));
      for (const [how, spoil] of Object.entries(spoilt)) {
        spoil(file);
        await isRefused(`The key in ${file} cannot be ${how === 'unreadable' ? 'read' : 'used'}`);
        const { said } = await run('check', '--quiet');
        const advice =
          how === 'unreadable'
            ? 'Move that directory away'
            : `andromeda admin key new ${kind} --yes --config ${config}`;
        assert.ok(said.includes(advice), said);
        rmSync(file, { recursive: true });
      }
      // What it advises works.
      assert.equal((await run('admin', 'key', 'new', kind, '--yes')).status, 0);
      assert.equal((await run('check', '--quiet')).status, 0);
      renameSync(`${file}.away`, file);
    }

    const file = join(dataDir, serviceSecrets.host.file);
    // All of them at once.
    renameSync(join(dataDir, 'keys'), join(dataDir, 'keys.away'));
    await isRefused(sentence(file), ['check', 'doctor']);
    await endsWith78(sentence(file));
    renameSync(join(dataDir, 'keys.away'), join(dataDir, 'keys'));

    // A new host key is made where it is accepted, and that is in the audit trail.
    const before = readFileSync(file, 'utf8');
    renameSync(file, `${file}.away`);
    writeFileSync(file, '');
    await endsWith78(`The key in ${file} cannot be used`);
    rmSync(file);
    const asked = await run('admin', 'key', 'new', 'host');
    assert.equal(asked.status, 1);
    assert.ok(
      asked.said.includes(`To accept a new one: andromeda admin key new host --yes --config ${config}`),
      asked.said,
    );
    assert.ok(!existsSync(file));
    const made = await run('admin', 'key', 'new', 'host', '--yes');
    assert.deepEqual([made.status, made.said], [0, `${file} is made. Start the service.\n`]);
    assert.notEqual(readFileSync(file, 'utf8'), before);
    const database = new Database(join(dataDir, 'andromeda.db'), { readonly: true });
    const entry = database
      .prepare(
        "select target, details from audit_entries where operation = 'newKey' order by seq desc limit 1",
      )
      .all();
    database.close();
    assert.deepEqual(entry, [{ target: 'host', details: 'the one before was missing' }]);
    await using _ = await startApp({ config: readConfig(config), log: createLogger('silent') });
  },
);

testOnFile(
  'the key of the built-in sign-in is missed where it was used, and not where the issuer is another',
  async () => {
    await using opened = await openTestStore();
    const { store, dataDir } = opened;
    await noteKeys(store, ['host', 'issuer']);
    await noteKeys(store, ['host', 'issuer']);
    await store.close();
    const missing = (kinds: Parameters<typeof listMissingKeys>[1]) =>
      listMissingKeys(dataDir, kinds, { unchanged: true }).map(missingKeyText);
    const [text = ''] = missing(['issuer', 'client']);
    assert.ok(
      text.startsWith(`${sentence(join(dataDir, 'issuer-keys.json'))}everybody would have to sign in`),
    );
    assert.match(text, /To accept a new one: andromeda admin key new issuer --yes$/);
    assert.deepEqual(missing(['client', 'audit']), []);
  },
);
