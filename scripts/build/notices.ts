/**
 * The terms of everything in an artifact, whole: Andromeda's licence, then the licence of each package that is part of it.
 * `andromeda version --licences` prints them. A package without a text of its own ends the build.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';

/** One line for the head of each bundle. */
export const header = 'Andromeda. Copyright 2026 the Andromeda authors. SPDX-License-Identifier: Apache-2.0';

/** Files in which packages carry their terms. */
const termsFile = /^(?:un)?licen[cs]e|^copying|^notice|^copyright/i;
/** Packages without a text, and the package of the same authors that has it. */
const sameTerms: Record<string, string> = { 'koa-compose': 'koa' };

/** The notices for these packages, which are keys of package-lock.json. `carrier`: the licence of the Node that runs them. */
export function noticesFor(root: string, packages: readonly string[], carrier = ''): string {
  const sections = new Map(
    packages.map((path) => {
      // The same package for another processor is not installed, and has the same terms.
      const found = existsSync(join(root, path)) ? path : path.replace(/linux-\w+/, `linux-${process.arch}`);
      const { version } = JSON.parse(readFileSync(join(root, found, 'package.json'), 'utf8'));
      return [`${nameOf(path)} ${version}`, termsOf(root, found)];
    }),
  );
  return [
    `${header}\n\n${readFileSync(join(root, 'LICENSE'), 'utf8')}`,
    ...(carrier ? [`${line}Node.js, which runs the program\n\n${carrier}`] : []),
    ...[...sections]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([title, text]) => `${line}${title}\n\n${text.trim()}\n`),
  ]
    .join('\n')
    .replaceAll(/\r|\f|^\uFEFF/gm, '');
}

/** The package's name; `path` is its key of package-lock.json. */
export const nameOf = (path: string): string =>
  path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

const line = `${'-'.repeat(80)}\n`;

function termsOf(root: string, path: string): string {
  const directory = join(root, path);
  const read = (name: string) => readFileSync(join(directory, name), 'utf8');
  const names = readdirSync(directory).sort();
  const texts = names.filter((name) => termsFile.test(name)).map(read);
  // Prebuilt addons have their terms in the package that loads them.
  const other = path.replace(/-(?:linux|darwin|win32)-[\w-]+$/, '');
  const same = sameTerms[nameOf(path)];
  if (other !== path) texts.unshift(termsOf(root, other));
  else if (texts.length === 0 && same) texts.push(termsOf(root, `node_modules/${same}`));
  if (texts.length === 0) {
    const readme = names.filter((name) => /^readme/i.test(name)).map(read);
    const section = readme.flatMap(
      (text) => /^(?:#+ *)?license\n[\s\S]*Permission is[\s\S]*/im.exec(text) ?? [],
    );
    texts.push(...section);
  }
  if (texts.length === 0) throw new Error(`${path} has no licence text (scripts/build/notices.ts).`);
  return texts.join('\n');
}

/** The packages that a bundle is made of. */
export function packagesIn({ inputs }: Metafile): string[] {
  const paths = Object.keys(inputs).flatMap((file) => /^(?:.*\/)?(node_modules\/.*)$/.exec(file)?.[1] ?? []);
  return [
    ...new Set(paths.flatMap((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? [])),
  ].sort();
}

/** With escapes also in what esbuild leaves as it is written: regular expressions, comments, and texts put in afterwards. */
export function inAscii(source: string): string {
  return source.replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
