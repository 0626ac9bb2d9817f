/** The shape of the house: who may import whom, and that every room says what it is for. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const src = resolve(dirname(fileURLToPath(import.meta.url)), '../src');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .sort();
const sources = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]));
/** For the version. */
const manifestFile = '../package.json';
const roomOf = (file: string) => (file.includes('/') ? (file.split('/')[0] ?? '') : '');
const rooms = [...new Set(files.map(roomOf))].filter(Boolean);

interface Import {
  from: string;
  /** A file of ours, or the name of a package. */
  to: string;
  isOurs: boolean;
  isType: boolean;
}

function importsOf(file: string, text: string): Import[] {
  const statement =
    /^\s*(?:import|export)\s+(type\s+)?(?:[\w*{}\s,$]+\s+from\s+)?'([^']+)'|\bimport\(\s*'([^']+)'|\bimport\.meta\.resolve\(\s*'([^']+)'|\bnew URL\(\s*'(\.[^']+\.ts)'/gm;
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  return [...code.matchAll(statement)].map(([, type, ...names]) => {
    const name = names.find((one) => one !== undefined) ?? '';
    const isOurs = name.startsWith('.');
    const to = isOurs ? relative(src, resolve(src, dirname(file), name)) : name;
    return { from: file, to, isOurs, isType: type !== undefined };
  });
}

const imports = files.flatMap((file) => importsOf(file, sources.get(file) ?? ''));

/** Files of no room that any may import. */
const leaves = new Set(['embedded.ts', 'log.ts', 'source-address.ts', 'ssh-key-file.ts', 'turn.ts']);

/** What each room may import besides itself and the leaves, and why nothing else. */
const allowed: Record<string, { rooms: string[]; reason: string }> = {
  domain: { rooms: [], reason: 'rules are pure: they must be readable and testable without the rest' },
  store: {
    rooms: ['domain'],
    reason: 'the database knows the rules, and nothing of who asks or over what wire',
  },
  api: { rooms: [], reason: 'it is made from the YAML documents, and holds nothing else' },
  business: {
    rooms: ['domain', 'store', 'api'],
    reason: 'an API shares state with other rooms through the store only',
  },
  platform: {
    rooms: ['domain', 'store', 'api'],
    reason: 'an API shares state with other rooms through the store only',
  },
  identity: { rooms: ['domain', 'store'], reason: 'who someone is does not depend on what they ask for' },
  audit: {
    rooms: ['domain', 'store'],
    reason: 'it reads the trail, and knows nothing of what entries are about',
  },
  gateway: { rooms: ['domain', 'store'], reason: 'the login decision is handed to it; it only obeys' },
  sync: {
    rooms: ['domain', 'store'],
    reason: 'reconciling reads the present truth, not what a room remembers',
  },
  'login-node': { rooms: ['domain'], reason: 'it stands for another machine, which has no database of ours' },
  http: {
    rooms: ['domain', 'api'],
    reason: 'operations are handed to it by app.ts, so that it mounts both APIs alike',
  },
  cli: {
    rooms: ['domain', 'api'],
    reason: 'the client talks to the server over HTTP only, and must start quickly',
  },
};

test('every room has its rule', () => {
  assert.deepEqual([...rooms].sort(), Object.keys(allowed).sort());
});

for (const [room, rule] of Object.entries(allowed)) {
  test(`${room} imports ${rule.rooms.join(' and ') || 'nothing'} of ours: ${rule.reason}`, () => {
    const wrong = imports.filter(({ from, to, isOurs }) => {
      if (!isOurs || roomOf(from) !== room) return false;
      const isOwn = roomOf(to) === room || leaves.has(to) || to === manifestFile;
      return !isOwn && !rule.rooms.includes(roomOf(to));
    });
    assert.deepEqual(
      wrong.map(({ from, to }) => `src/${from} must not import src/${to}: ${rule.reason}`),
      [],
    );
  });
}

test('domain imports nothing of npm, and of Node only crypto, so that nothing in it does I/O', () => {
  const outside = imports.filter(({ from, isOurs }) => roomOf(from) === 'domain' && !isOurs);
  assert.deepEqual(
    outside.filter(({ to }) => to !== 'node:crypto').map(({ from, to }) => `src/${from} imports ${to}`),
    [],
  );
  const logs = imports.filter(({ from, to }) => roomOf(from) === 'domain' && to === 'log.ts');
  assert.deepEqual(logs, []);
});

const packages: Record<string, { rooms: string[]; reason: string }> = {
  express: { rooms: ['http'], reason: 'operations know nothing of HTTP' },
  ssh2: { rooms: ['gateway', 'login-node'], reason: 'SSH is theirs alone' },
  '@napi-rs/keyring': { rooms: ['cli'], reason: 'a session belongs to whoever signed in' },
  commander: { rooms: ['cli'], reason: 'the server has no command line of its own' },
  'better-sqlite3': { rooms: ['store'], reason: 'another database must be able to take its place' },
  kysely: { rooms: ['store'], reason: 'queries live in one room' },
  'oidc-provider': { rooms: ['identity'], reason: 'the embedded issuer is a part of identity' },
  '@kubernetes/client-node': { rooms: ['sync'], reason: 'only a driver speaks with API servers' },
  'node-pty': { rooms: ['login-node'], reason: 'terminals exist on login nodes only' },
};
for (const [name, { rooms: homes, reason }] of Object.entries(packages)) {
  test(`${name} is imported only in ${homes.join(' and ')}: ${reason}`, () => {
    const wrong = imports.filter(
      ({ from, to }) => (to === name || to.startsWith(`${name}/`)) && !homes.includes(roomOf(from)),
    );
    assert.deepEqual(
      wrong.map(({ from }) => `src/${from}`),
      [],
    );
    assert.ok(imports.some(({ to }) => to === name || to.startsWith(`${name}/`)));
  });
}

test('only store/grants.ts reads grants, so that nobody takes one whose time is up for a live one', () => {
  const readers = [...sources].filter(
    ([file, text]) =>
      /(selectFrom|innerJoin|leftJoin)\('resource_grants/.test(text) && !/migrations/.test(file),
  );
  assert.deepEqual(
    readers.map(([file]) => file),
    ['store/grants.ts'],
  );
});

test('a migration imports nothing of ours, so that a released one stays what it was', () => {
  const wrong = imports.filter(({ from, isOurs }) => /^store\/migrations\/\d/.test(from) && isOurs);
  assert.deepEqual(
    wrong.map(({ from, to }) => `src/${from} imports src/${to}`),
    [],
  );
});

test('only app.ts, and what begins there, sees several rooms', () => {
  // The shape of a lab file is a schema of the API's document.
  const roots = ['app.ts', 'backup.ts', 'bootstrap.ts', 'serve.ts', 'demo.ts', 'main.ts', 'lab-file.ts'];
  for (const file of files.filter(
    (file) => roomOf(file) === '' && !roots.includes(file) && !file.startsWith('app-'),
  )) {
    const seen = imports.filter(({ from, to, isOurs }) => from === file && isOurs && roomOf(to) !== '');
    assert.deepEqual(
      [...new Set(seen.map(({ to }) => roomOf(to)))].filter((room) => room !== 'domain'),
      [],
      file,
    );
  }
});

test('nothing imports app.ts but what starts it', () => {
  const users = imports.filter(({ to }) => to === 'app.ts').map(({ from }) => from);
  assert.deepEqual(
    [...new Set(users)].filter((file) => !['serve.ts', 'demo.ts'].includes(file)),
    [],
  );
});

/** Folders whose files still import each other's types in circles, and why for now. */
const circular: Record<string, string> = {
  gateway: 'a session, its events and its relay still know each other',
};

test('no file imports itself by way of others, types included', () => {
  const edges = new Map<string, string[]>();
  for (const { from, to, isOurs, isType } of imports) {
    if (!isOurs || !sources.has(to) || (isType && roomOf(from) in circular)) continue;
    edges.set(from, [...(edges.get(from) ?? []), to]);
  }
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string, path: string[]) => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' → '));
    if (done.has(file) || path.includes(file)) return;
    for (const next of edges.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  assert.deepEqual(circles, []);
});

test('every import is of a file that exists, a package that package.json names, or Node by its prefix', () => {
  const manifest = JSON.parse(readFileSync(join(src, '../package.json'), 'utf8'));
  // Types of a format, not code.
  const known = new Set([...Object.keys(manifest.dependencies), 'openapi-types']);
  const wrong = imports.filter(({ to, isOurs, isType }) => {
    if (isOurs) return !sources.has(to) && to !== manifestFile;
    if (to.startsWith('node:')) return !builtinModules.includes(to.slice(5)) && !builtinModules.includes(to);
    const name = to
      .split('/')
      .slice(0, to.startsWith('@') ? 2 : 1)
      .join('/');
    return !known.has(name) && !isType;
  });
  assert.deepEqual(
    wrong.map(({ from, to }) => `src/${from}: ${to}`),
    [],
  );
});

/** The file of a room that says what the room is for; in domain every file does. */
const mains: Record<string, string[]> = { http: ['api.ts'], cli: ['program.ts'] };
for (const room of rooms) {
  const own = files.filter((file) => roomOf(file) === room);
  if (room === 'api') continue; // made by scripts/generate.ts, which says so at the head of each
  const heads = room === 'domain' ? own : (mains[room] ?? ['index.ts']).map((name) => `${room}/${name}`);
  test(`${room} begins with a comment that says what it is for`, () => {
    for (const file of heads) assert.match(sources.get(file) ?? '', /^\/\*\*[\s\S]{20,}?\*\//, `src/${file}`);
  });
}

test('no file is longer than 400 lines, and most have fewer than 100', () => {
  const lengths = [...sources]
    .filter(([file]) => roomOf(file) !== 'api')
    .map(([file, text]) => ({ file, lines: text.split('\n').length }));
  assert.deepEqual(
    lengths.filter(({ lines }) => lines > 400).map(({ file }) => file),
    [],
  );
  const short = lengths.filter(({ lines }) => lines <= 100).length;
  assert.ok(short > lengths.length / 2, `${short} of ${lengths.length}`);
});
