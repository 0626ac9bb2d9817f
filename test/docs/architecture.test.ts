/** docs/architecture.md names what exists, and its walks stay short; every link between pages leads to a heading that exists. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
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

const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: root });
const read = (file: string) => readFileSync(join(root, file), 'utf8');

/** The anchor that GitHub and others make of a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

function isThere(file: string, anchor: string | undefined): boolean {
  if (!existsSync(join(root, file))) return false;
  if (anchor === undefined) return true;
  return [...read(file).matchAll(/^#+ (.*)$/gm)].some(([, heading = '']) => anchorOf(heading) === anchor);
}

for (const page of pages)
  test(`every link on ${page} leads to a page and a heading that exist`, () => {
    const targets = [...read(page).matchAll(/\]\(([^)]+)\)/g)].map(([, target = '']) => target);
    const broken = targets
      .filter((target) => !URL.canParse(target))
      .filter((target) => {
        const [path = '', anchor] = target.split('#');
        const file = path === '' ? page : relative(root, join(root, dirname(page), path));
        return !isThere(file, anchor);
      });
    assert.deepEqual(broken, []);
  });

test('every page that the program, a script or a test names exists', () => {
  const files = globSync(['src/**/*.{ts,tsx}', 'scripts/**/*', 'test/**/*.ts'], {
    cwd: root,
    withFileTypes: true,
  })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  const broken = files.flatMap((file) =>
    [...read(file).matchAll(/docs\/[\w/-]+\.md/g)]
      .filter(([page]) => !existsSync(join(root, page)))
      .map(([page]) => `${file}: ${page}`),
  );
  assert.deepEqual(broken, []);
});
