/** Program, package, API documents, changelog and pages name one version. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import manifest from '../../package.json' with { type: 'json' };

const read = (file: string) => readFileSync(join(import.meta.dirname, '../..', file), 'utf8');

for (const [file, version] of [
  ['package-lock.json', /^ {2}"version": "(.*)"/m],
  ['openapi/platform.yaml', /^ {2}version: (.*)$/m],
  ['openapi/business.yaml', /^ {2}version: (.*)$/m],
  ['CHANGELOG.md', /^## (.*)$/m],
  ['docs/install.md', /andromeda-clients-(\d.*)\.tar\.gz/],
] as const)
  test(`${file} is of the version of package.json`, () => {
    assert.equal(version.exec(read(file))?.[1], manifest.version);
  });
