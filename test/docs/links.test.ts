/** Every link between pages, and every page that the program or a test names, leads to a heading that exists. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '../..');
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
