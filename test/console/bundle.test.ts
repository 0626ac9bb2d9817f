import assert from 'node:assert/strict';
import { test } from 'node:test';
import { consoleFiles } from '../../src/lib/packaging.ts';

const most = 180_000;

test('the first load of the console is small, and comes with the licences of what is in it', async () => {
  const files = await consoleFiles();
  const page = files.get('index.html')?.plain.toString() ?? '';
  const named = [...page.matchAll(/(?:src|href)="\/([^"]+)"/g)].map(([, name = '']) => name);
  assert.ok(named.length >= 3, page);
  const size = ['index.html', ...named]
    .map((name) => files.get(name))
    .reduce((sum, file) => sum + (file?.gzip ?? file?.plain ?? Buffer.alloc(most)).length, 0);
  assert.ok(size <= most, `${size} bytes, of ${most}`);
  // Nothing is loaded from elsewhere; addresses in sentences of the libraries are no loads.
  for (const [name, { plain }] of files) {
    if (name.endsWith('.css')) assert.doesNotMatch(plain.toString(), /url\(|@import/, name);
  }
  assert.ok([...files.keys()].some((name) => name.endsWith('LEGAL.txt')));
});
