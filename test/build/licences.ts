/** The licence texts that an artifact must carry, read from node_modules without the code of the build. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };

const root = join(import.meta.dirname, '../..');

/** Fails where the text lacks the licence of Andromeda or of a package that files of `folders` import. */
export function requireLicences(text: string, folders: string): void {
  const sources = globSync(`src/${folders}/**/*.{ts,tsx}`, { cwd: root }).map((file) =>
    readFileSync(join(root, file), 'utf8'),
  );
  const imported = sources.flatMap((source) =>
    [...source.matchAll(/^(?!import type).*\b(?:from|import)[ (]'((?:@[^/']+\/)?[^/.'][^/']*)/gm)].map(
      ([, name = '']) => name,
    ),
  );
  const known: Record<string, string> = { ...manifest.dependencies, ...manifest.devDependencies };
  const names = [...new Set(imported)].filter((name) => name in known && !name.startsWith('@napi-rs/'));
  assert.ok(names.length >= 3, `${folders} import ${names}`);
  const plain = (some: string) => some.replaceAll(/\s+/g, ' ').trim();
  const all = plain(text);
  for (const file of ['LICENSE', ...names.map((name) => `node_modules/${name}/{LICENSE*,license*}`)]) {
    const [found = ''] = globSync(file, { cwd: root });
    assert.ok(all.includes(plain(readFileSync(join(root, found), 'utf8'))), `the text of ${file} is missing`);
  }
}
