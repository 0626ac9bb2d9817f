/** docs/architecture.md names what exists, and its walks stay short enough to follow. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readPage } from './pages.ts';

const root = join(import.meta.dirname, '../..');
const { text } = readPage('architecture.md');
const filesIn = (part: string) =>
  [...part.matchAll(/`([\w./-]+\.(?:ts|mjs|yaml|md|json))`/g)].map(([, file = '']) => file);

test('every file that docs/architecture.md names exists', () => {
  const files = filesIn(text);
  const ownByInstallation = ['andromeda.yaml'];
  assert.ok(files.length > 20, `${files.length} files`);
  assert.deepEqual(
    files.filter((file) => !ownByInstallation.includes(file) && !existsSync(join(root, file))),
    [],
  );
});

test('docs/architecture.md says of every folder of src what it owns', () => {
  const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  );
  const rows = text.split('\n').filter((line) => /^\| `/.test(line));
  const missing = folders.filter(
    ({ name }) => !rows.some((row) => row.split('|')[1]?.includes(`\`${name}\``)),
  );
  assert.deepEqual(
    missing.map(({ name }) => name),
    [],
  );
});

for (const [heading, most] of [
  ['A key, from POST to shell', 8],
  ['A permission change, to a Kubernetes binding', 8],
  ['A forwarded channel', 6],
] as const)
  test(`"${heading}" is a walk through at most ${most} files of src`, () => {
    const section = text.split('\n## ').find((part) => part.startsWith(heading)) ?? '';
    const files = new Set(filesIn(section).filter((file) => file.startsWith('src/')));
    assert.ok(files.size >= 4 && files.size <= most, [...files].join(', '));
  });
