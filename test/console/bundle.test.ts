import assert from 'node:assert/strict';
import { test } from 'node:test';
import { consoleFiles } from '../../src/lib/packaging.ts';
import { requireLicences } from '../build/licences.ts';

const most = 155_000;

test('the first load of the console is small, and comes with the licences of what is in it', async () => {
  const files = await consoleFiles();
  const page = files.get('index.html')?.plain.toString() ?? '';
  const named = [...page.matchAll(/(?:src|href)="\/([^"]+)"/g)].map(([, name = '']) => name);
  assert.ok(named.length >= 3, page);
  // A set grows while it is walked: what a script imports at once is loaded with it, and what it asks for later is not.
  const first = new Set(['index.html', ...named]);
  for (const name of first) {
    if (!name.endsWith('.js')) continue;
    const text = files.get(name)?.plain.toString() ?? '';
    for (const [, chunk] of text.matchAll(/(?:from|import)"\.\/([^"]+)"/g)) first.add(`assets/${chunk}`);
  }
  assert.ok(first.size > named.length + 1, 'what the pages share is in a file of its own');
  const size = [...first]
    .map((name) => files.get(name))
    .reduce((sum, file) => sum + (file?.gzip ?? file?.plain ?? Buffer.alloc(most)).length, 0);
  assert.ok(size <= most, `${size} bytes, of ${most}`);
  // Nothing is loaded from elsewhere; addresses in sentences of the libraries are no loads.
  for (const [name, { plain }] of files) {
    if (name.endsWith('.css')) assert.doesNotMatch(plain.toString(), /url\(|@import/, name);
  }
  requireLicences(files.get('notices.txt')?.plain.toString() ?? '', 'console/app');
});
