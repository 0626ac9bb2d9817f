import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openStore } from '../../src/store/index.ts';
import { physics } from '../support/app.ts';
import { openTestStore, userId } from '../support/store.ts';

const writer = fileURLToPath(new URL('./key-writer.ts', import.meta.url));
const rounds = 4;

/** Runs the writer until a random moment after its first acknowledgement, and kills it there. */
async function writeAndKill(dataDir: string, user: string, run: string): Promise<string[]> {
  const child = spawn(process.execPath, [writer, dataDir, user, run], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    if (output === '') setTimeout(() => child.kill('SIGKILL'), 20 + Math.random() * 200);
    output += text;
  });
  await new Promise((done) => child.once('close', done));
  return output.split('\n').slice(0, -1);
}

async function openAgain(dataDir: string) {
  const store = await openStore(dataDir);
  return { store, [Symbol.asyncDispose]: () => store.close() };
}

test('after kill -9 every acknowledged write is there, and no command is there by half', async () => {
  await using opened = await openTestStore({ ...physics, clusters: [] });
  const { dataDir } = opened;
  const ada = await userId(opened.store, 'ada@physics.example');
  // One process holds a data directory at a time.
  await opened.store.close();
  const acknowledged: string[] = [];
  for (let round = 0; round < rounds; round++) {
    acknowledged.push(...(await writeAndKill(dataDir, ada, `run-${round}`)));
  }
  assert.ok(acknowledged.length > rounds);
  await using reopened = await openAgain(dataDir);
  const { store } = reopened;

  const keys = await store.read.selectFrom('ssh_keys').selectAll().orderBy('id').execute();
  const states = new Map(keys.map((key) => [key.id, key.lifecycle_state]));
  for (const line of acknowledged) {
    const [what, id = ''] = line.split(' ');
    if (what === 'registered') assert.ok(states.has(id), line);
    else assert.equal(states.get(id), 'revoked', line);
  }

  const commands = await store.read.selectFrom('commands').selectAll().execute();
  const audit = await store.read
    .selectFrom('audit_entries')
    .selectAll()
    .where('command_id', 'is not', null)
    .execute();
  assert.deepEqual(audit.map((entry) => entry.command_id).sort(), commands.map(({ id }) => id).sort());
  const made = commands.filter(({ operation }) => operation === 'registerSshKey');
  assert.deepEqual(keys.map((key) => key.created_command_id).sort(), made.map(({ id }) => id).sort());
  const revoked = keys.filter((key) => key.lifecycle_state === 'revoked');
  assert.equal(commands.length - made.length, revoked.length);
  assert.ok(revoked.every((key) => key.revoked_at !== null));
  const set = await store.read.selectFrom('ssh_key_sets').selectAll().executeTakeFirstOrThrow();
  assert.equal(set.generation, keys.length + revoked.length);
});
