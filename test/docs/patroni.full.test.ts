/** docs/scale/patroni.yaml on two hosts: its primary is killed, and the service goes on with what took over, and later with both. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { type Addresses, pickAddresses, readExample } from '../../scripts/campaign/cluster/addresses.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { createPerson } from '../../src/store/people/people.ts';
import { eventually } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { missingPostgres, postgresPrograms, signalsTo } from '../support/postgres-server.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/scale.md'), 'utf8');
/** PostgreSQL and what starts it have the account of Debian's package. */
const idOf = (flag: string) => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout);
const missing = ['patroni', 'etcd'].find((name) => spawnSync(name, ['--version']).status !== 0);
const skip =
  missingPostgres() ??
  (missing
    ? `${missing} is not installed`
    : process.getuid?.() !== 0 && 'only root starts PostgreSQL by another account');

/** One host of the page: its Patroni, which starts PostgreSQL. */
class Host {
  readonly address: string;
  readonly #folder: string;
  readonly #file: string;
  readonly #account = { uid: idOf('-u'), gid: idOf('-g') };
  #patroni: ChildProcess | undefined;

  constructor(name: string, at: number, { parent, addresses }: { parent: string; addresses: Addresses }) {
    this.address = addresses.databases[at] ?? '';
    this.#folder = join(parent, name);
    this.#file = join(this.#folder, 'config.yml');
    mkdirSync(this.#folder);
    const { cert, key } = createAuthority().issue('server');
    this.#put('server.crt', cert);
    this.#put('server.key', key);
    const own = readExample('patroni.yaml')
      .replace('name: one', `name: ${name}`)
      .replaceAll(/10\.20\.0\.21(?=:8008|:5432)/g, `10.20.0.${21 + at}`)
      // Connections from loopback to any address of it come from its first one.
      .replaceAll('10.20.0.0/24', '127.0.0.0/8')
      .replaceAll('/etc/postgresql', this.#folder)
      .replace('/var/lib/postgresql/15/andromeda', this.#data)
      .replace('/usr/lib/postgresql/15/bin', postgresPrograms() ?? '')
      // Both hosts are this one.
      .replace('ssl: "on"', `ssl: "on"\n    unix_socket_directories: ${this.#folder}`);
    this.#put('config.yml', addresses.adapt(own));
    chownSync(this.#folder, this.#account.uid, this.#account.gid);
  }

  get #data(): string {
    return join(this.#folder, 'data');
  }

  start(): void {
    const env = { ...process.env, HOME: this.#folder };
    this.#patroni = spawn('patroni', [this.#file], {
      ...this.#account,
      cwd: this.#folder,
      env,
      stdio: 'ignore',
    });
  }

  /** Ends it and its PostgreSQL from one moment to the next. */
  kill(): void {
    this.#patroni?.kill('SIGKILL');
    const file = join(this.#data, 'postmaster.pid');
    const pid = existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : 0;
    if (existsSync(`/proc/${pid}/cwd`)) signalsTo({ pid })('SIGKILL');
  }

  [Symbol.dispose](): void {
    this.kill();
  }

  async query(sql: string, database = 'postgres'): Promise<Record<string, unknown>[]> {
    const login = { host: this.address, user: 'postgres', password: 'SUPERUSER', database };
    const client = new pg.Client({ ...login, ssl: { rejectUnauthorized: false } });
    client.on('error', () => {});
    try {
      await client.connect();
      return (await client.query(sql)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  #put(name: string, text: string): void {
    const file = join(this.#folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    chownSync(file, this.#account.uid, this.#account.gid);
  }
}

/** Its third place. */
function startEtcd(host: string, folder: string): ChildProcess {
  const [clients, peers] = [`http://${host}:2379`, `http://${host}:2380`];
  const options = {
    ...{ 'data-dir': folder, 'listen-client-urls': clients, 'advertise-client-urls': clients },
    ...{ 'listen-peer-urls': peers, 'initial-advertise-peer-urls': peers },
    'initial-cluster': `default=${peers}`,
  };
  const all = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  return spawn('etcd', all, { stdio: 'ignore' });
}

test('under Patroni with the documented file, a write that was answered outlives its primary, which comes back as a standby', {
  skip,
}, async () => {
  using directory = temporaryDirectory();
  chmodSync(directory.path, 0o711);
  const addresses = pickAddresses();
  const where = { parent: directory.path, addresses };
  using one = new Host('one', 0, where);
  using two = new Host('two', 1, where);
  using stack = new DisposableStack();
  const etcd = startEtcd(addresses.adapt('10.20.0.23'), join(directory.path, 'etcd'));
  stack.defer(() => void etcd.kill('SIGKILL'));
  const isPrimary = (host: Host) =>
    eventually(
      () => host.query('select 1 where not pg_is_in_recovery()').catch(() => []),
      (rows) => rows.length === 1,
    );
  const isSynchronous = (primary: Host) =>
    eventually(
      () => primary.query("select 1 from pg_stat_replication where sync_state = 'sync'").catch(() => []),
      (rows) => rows.length === 1,
    );
  one.start();
  await isPrimary(one);
  two.start();
  await isSynchronous(one);
  const [roles = ''] = /^ {7}create role andromeda (?:.*\n)+?(?=\n)/m.exec(page) ?? [];
  for (const statement of roles.replaceAll("'…'", "'secret'").split(';').slice(0, 3))
    await one.query(statement);

  const hosts = [one, two].map(({ address }) => `${address}:5432`).join(',');
  const database = `postgres://andromeda:secret@${hosts}/andromeda?sslmode=require`;
  const store = await openStore(join(directory.path, 'own'), { database });
  try {
    const add = (name: string) =>
      store.write(
        async (tx) => void (await createPerson(tx, { email: `${name}@x.example`, displayName: name })),
      );
    await add('ada');
    one.kill();
    await isPrimary(two);
    await eventually(
      () =>
        add('bob').then(
          () => true,
          () => false,
        ),
      Boolean,
    );
    one.start();
    await isSynchronous(two);
    await add('cleo');
    for (const host of [one, two]) {
      const rows = await host.query(
        "select display_name from users where kind = 'person' order by 1",
        'andromeda',
      );
      assert.deepEqual(
        rows.map((row) => row['display_name']),
        ['ada', 'bob', 'cleo'],
      );
    }
    assert.deepEqual(store.formerPrimaries(), []);
  } finally {
    await store.close();
  }
});
