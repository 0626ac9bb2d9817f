/**
 * What every folder of src says of itself, how long files may be, and which names are not used. Who may import whom:
 * .dependency-cruiser.mjs.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import ts from 'typescript';

const root = join(import.meta.dirname, '..');
const src = join(root, 'src');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .sort();
const sources = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]));
/** The folder with a purpose of its own: a top folder, or one below those that hold several. */
const folderOf = (file: string) => {
  const [top = '', second = '', third] = file.split('/');
  if (!second) return '';
  return third !== undefined && ['api', 'gateway', 'service'].includes(top) ? `${top}/${second}` : top;
};
const folders = [...new Set(files.map(folderOf))].filter(Boolean);

test('only store/organizations/grants.ts reads grants, so that no code takes one whose time is up for a live one', () => {
  const readers = [...sources].filter(
    ([file, text]) =>
      /(selectFrom|innerJoin|leftJoin)\('resource_grants/.test(text) && !/migrations/.test(file),
  );
  assert.deepEqual(
    readers.map(([file]) => file),
    ['store/organizations/grants.ts'],
  );
});

test('only peers and the store know whether there can be other servers', () => {
  const knowing = files.filter((file) => /\bisAlone\b/.test(codeOf(file)));
  assert.deepEqual(
    knowing.filter((file) => !/^store\/engine\//.test(file)),
    ['service/compose/peers/index.ts', 'store/data-dir/open-store.ts', 'store/servers/servers.ts'],
  );
});

/** A file without its comments and texts. */
function codeOf(file: string): string {
  const text = sources.get(file) ?? '';
  return text.replaceAll(
    /\/\*[\s\S]*?\*\/|\/\/.*|`(?:[^`\\]|\\[\s\S])*`|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g,
    "''",
  );
}

test('names of columns stay in the store, and those of the wire at the wire', () => {
  const columns = new Set(codeOf('store/generated/schema.ts').match(/\b[a-z]+(_[a-z]+)+(?=\??:)/g));
  columns.add('org_id').add('orgId');
  assert.ok(columns.has('lifecycle_state'));
  // The record of the audit trail has one form wherever it is read. Identity speaks of the claims of tokens.
  const speaksTheWire =
    /^(store|api\/(generated|business|platform|identity)|cli|console\/app)\/|^(domain\/(audit\/(audit|sentence)|people\/erasure)|service\/audit\/retention)\.ts$/;
  const found = files.flatMap((file) => {
    const code = codeOf(file);
    if (!speaksTheWire.test(file)) {
      const names = code.match(/\b[a-z]+(_[a-z]+)+\b|\borgId\b/g) ?? [];
      return names.filter((name) => columns.has(name)).map((name) => `${file}: ${name}`);
    }
    // Operations take fields of the wire from a request, and put them into a reply. Nothing else that they read has any.
    if (!/^api\/(business|platform)\//.test(file)) return [];
    const names = code.match(/(?<!\bbody|\bquery|\bpath)\??\.([a-z]+(_[a-z]+)+|orgId)\b/g) ?? [];
    return names.map((name) => `${file}: ${name}`);
  });
  assert.deepEqual(found, []);
});

test('a write is given no time besides that of its transaction', () => {
  // What the issuer keeps goes by the clock of its protocol, in seconds.
  const found = files.filter(
    (file) =>
      file !== 'store/people/issuer-records.ts' &&
      /\(\s*tx: Tx\b[^)]*\bnow: number/.test(sources.get(file) ?? ''),
  );
  assert.deepEqual(found, []);
});

/** The file of a folder that says what the folder is for; in domain every file does. */
const mains: Record<string, string[]> = {
  'api/http': ['api.ts'],
  cli: ['program.ts'],
  console: ['server/index.ts'],
  store: ['engine/index.ts'],
  'service/host': ['serve.ts'],
};
for (const folder of folders) {
  const own = files.filter((file) => folderOf(file) === folder);
  if (folder === 'api/generated') continue; // made by scripts/generate.ts, which says so at the head of each
  const everyFile = ['domain', 'lib'];
  const heads = everyFile.includes(folder)
    ? own
    : (mains[folder] ?? ['index.ts']).map((name) => `${folder}/${name}`);
  test(`${folder} begins with a comment that says what it is for`, () => {
    for (const file of heads) assert.match(sources.get(file) ?? '', /^\/\*\*[\s\S]{20,}?\*\//, `src/${file}`);
  });
}

test('no file is longer than 400 lines, and most have fewer than 150', () => {
  const lengths = [...sources]
    .filter(([file]) => !file.includes('/generated/'))
    .map(([file, text]) => ({ file, lines: text.split('\n').length }));
  assert.deepEqual(
    lengths.filter(({ lines }) => lines > 400).map(({ file }) => file),
    [],
  );
  const short = lengths.filter(({ lines }) => lines <= 150).length;
  assert.ok(short > lengths.length / 2, `${short} of ${lengths.length}`);
});

/** Parts of names that were used here for what has a usual one: message, observe, location, rate limit, sandbox, back-off … */
const whimsical =
  /^(words|told|tells?|looks?|looked|places?|stuck|doors?|turns?|errands?|courteous|rooms?|strangers?|whoever)$/;
/**
 * Files that may say `words`: log events and a simulated cluster's state on disk have fields of such a name, and passwords
 * are made of words.
 */
const mayHaveWords =
  /^(domain\/people\/password|lib\/log|gateway\/process\/(member|processes)|sync\/(slurm\/(observe|left-hosts)|simulated\/(foreign|index)))\.ts$/;

test('names use the terms that engineers search for', () => {
  const scripts = readdirSync(join(root, 'scripts'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|mjs)$/.test(name))
    .map((name): [string, string] => [name, readFileSync(join(root, 'scripts', name), 'utf8')]);
  const found = [...sources, ...scripts].flatMap(([file, text]) => {
    const names = [...identifiersOf(file, text)].filter(
      (name) => !/words(Ms)?$/i.test(name) || !mayHaveWords.test(file),
    );
    const fileName = file.replace(/^.*\/|\.\w+$/g, '');
    return [...names, fileName].filter(isWhimsical).map((name) => `${file}: ${name}`);
  });
  assert.deepEqual(found, []);
});

const unclear = /\b(nobody|somebody|whoever|told|heard|beside|elsewhere)\b/i;

test('titles of tests are written as an engineer would say them', () => {
  const title = /\b(?:test|it|describe)\(\s*(`(?:[^`\\]|\\.)*`|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")/g;
  const found = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => [...readFileSync(join(root, 'test', name), 'utf8').matchAll(title)])
    .map(([, text = '']) => text);
  assert.ok(found.length > 1_500, `${found.length}`);
  assert.deepEqual(
    found.filter((text) => unclear.test(text)),
    [],
  );
});

test('comments are written as an engineer would say them', () => {
  const token = /\/\*[\s\S]*?\*\/|\/\/.*|`(?:[^`\\]|\\[\s\S])*`|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g;
  const found = [...sources].flatMap(([file, text]) =>
    (text.match(token) ?? [])
      .filter((one) => /^\/[/*]/.test(one) && unclear.test(one))
      .map((one) => `${file}: ${unclear.exec(one)?.[0]}`),
  );
  assert.deepEqual(
    found.filter((one) => !one.includes('/generated/')),
    [],
  );
});

/** Columns of the database keep their names, which have underscores. */
function isWhimsical(name: string): boolean {
  return name.split(/(?=[A-Z])|-/).some((part) => whimsical.test(part.toLowerCase()));
}

function identifiersOf(file: string, text: string): Set<string> {
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) names.add(node.text.replace('#', ''));
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest));
  return names;
}
