/** What every folder of src says of itself, and how long files may be. Who may import whom: .dependency-cruiser.mjs. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const src = join(import.meta.dirname, '../src');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .sort();
const sources = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]));
const folderOf = (file: string) => (file.includes('/') ? (file.split('/')[0] ?? '') : '');
const folders = [...new Set(files.map(folderOf))].filter(Boolean);

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

/** The file of a folder that says what the folder is for; in domain every file does. */
const mains: Record<string, string[]> = {
  http: ['api.ts'],
  cli: ['program.ts'],
  host: ['serve.ts'],
};
for (const folder of folders) {
  const own = files.filter((file) => folderOf(file) === folder);
  if (folder === 'api') continue; // made by scripts/generate.ts, which says so at the head of each
  const everyFile = ['domain', 'lib', 'ssh'];
  const heads = everyFile.includes(folder)
    ? own
    : (mains[folder] ?? ['index.ts']).map((name) => `${folder}/${name}`);
  test(`${folder} begins with a comment that says what it is for`, () => {
    for (const file of heads) assert.match(sources.get(file) ?? '', /^\/\*\*[\s\S]{20,}?\*\//, `src/${file}`);
  });
}

test('no file is longer than 400 lines, and most have fewer than 100', () => {
  const lengths = [...sources]
    .filter(([file]) => folderOf(file) !== 'api')
    .map(([file, text]) => ({ file, lines: text.split('\n').length }));
  assert.deepEqual(
    lengths.filter(({ lines }) => lines > 400).map(({ file }) => file),
    [],
  );
  const short = lengths.filter(({ lines }) => lines <= 100).length;
  assert.ok(short > lengths.length / 2, `${short} of ${lengths.length}`);
});
