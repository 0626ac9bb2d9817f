/**
 * The web console's pages → the files that browsers load: bundled, named by their content, packed. A checkout does it when
 * somebody first asks for the console (src/lib/packaging.ts), and keeps the result until a source changes; `npm run build`
 * does it for the executable.
 */
import { createHash } from 'node:crypto';
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip, constants as zlib } from 'node:zlib';
import { build } from 'esbuild';
import type { ConsoleFile } from '../../src/lib/packaging.ts';
import { header, noticesFor, packagesIn } from './notices.ts';

const app = 'src/console/app';
const types: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
};
/** Smaller is not worth unpacking. */
const packFrom = 200;

/** The files by their path. */
export async function buildConsole(root: string): Promise<Map<string, ConsoleFile>> {
  const kept = join(root, 'node_modules/.cache', `andromeda-console-${hashOfSources(root)}`);
  return readFiles(kept) ?? keep(kept, await bundle(root));
}

const legal = `/*! ${header}. Notices: /notices.txt */`;

/** What esbuild makes of the pages. */
export function bundlePages(root: string) {
  return build({
    absWorkingDir: root,
    entryPoints: { app: `${app}/main.tsx`, theme: `${app}/theme.ts` },
    outdir: '/assets',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    target: ['chrome123', 'firefox128', 'safari17.5'],
    jsx: 'automatic',
    minify: true,
    write: false,
    preserveSymlinks: true,
    // Licences are in a file of their own.
    legalComments: 'none',
    banner: { js: legal, css: legal },
    metafile: true,
    logLevel: 'warning',
    define: { 'process.env.NODE_ENV': '"production"' },
    tsconfig: `${app}/tsconfig.json`,
  });
}

async function bundle(root: string): Promise<Map<string, ConsoleFile>> {
  const { outputFiles, metafile } = await bundlePages(root);
  const made = outputFiles.map(({ path, contents }) => [path.slice(1), Buffer.from(contents)] as const);
  const named = (entry: string, ending: string) =>
    made.find(([path]) => path.startsWith(`assets/${entry}-`) && path.endsWith(ending))?.[0];
  const page = readFileSync(join(root, app, 'index.html'), 'utf8')
    .replace('{theme}', `/${named('theme', '.js')}`)
    .replace('{script}', `/${named('app', '.js')}`)
    .replace('{style}', `/${named('app', '.css')}`);
  const icon = readFileSync(join(root, app, 'icon.svg'));
  const notices = noticesFor(root, packagesIn(metafile));
  const all = [
    ...made,
    ['index.html', Buffer.from(page)] as const,
    ['icon.svg', icon] as const,
    ['notices.txt', Buffer.from(notices)] as const,
  ];
  return new Map(
    await Promise.all(all.map(async ([path, plain]) => [path, await fileOf(path, plain)] as const)),
  );
}

async function fileOf(path: string, plain: Buffer): Promise<ConsoleFile> {
  const type = types[path.slice(path.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
  const tag = createHash('sha256').update(plain).digest('base64url').slice(0, 16);
  if (plain.length < packFrom) return { type, tag, plain };
  const params = { [zlib.BROTLI_PARAM_SIZE_HINT]: plain.length };
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(plain, { params }),
    promisify(gzip)(plain, { level: 9 }),
  ]);
  return { type, tag, plain, br, gzip: zipped };
}

/** Changes with whatever the result is made of. */
function hashOfSources(root: string): string {
  // Rules of the domain are the same in pages.
  const sources = [`${app}/**/*.{ts,tsx,css,html,svg,json}`, 'src/domain/**/*.ts'];
  const files = globSync(sources, { cwd: root }).sort();
  const builders = ['scripts/build/console.ts', 'scripts/build/notices.ts'];
  const hash = createHash('sha256');
  for (const file of [...files, 'LICENSE', 'package-lock.json', ...builders]) {
    hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex').slice(0, 20);
}

function readFiles(directory: string): Map<string, ConsoleFile> | undefined {
  const read = (path: string) => readFileSync(join(directory, path));
  try {
    const listed: Record<string, { type: string; tag: string; isPacked: boolean }> = JSON.parse(
      String(read('files.json')),
    );
    const files = Object.entries(listed).map(([path, { type, tag, isPacked }]) => {
      const packed = isPacked && { br: read(`${path}.br`), gzip: read(`${path}.gz`) };
      return [path, { type, tag, plain: read(path), ...packed }] as const;
    });
    return new Map(files);
  } catch {
    return undefined;
  }
}

/** Writes it beside and renames it, for several programs may do so at once. Where it cannot be kept, it is made anew. */
function keep(directory: string, files: Map<string, ConsoleFile>): Map<string, ConsoleFile> {
  try {
    const cache = dirname(directory);
    mkdirSync(cache, { recursive: true });
    for (const old of readdirSync(cache)) {
      if (/^andromeda-console-[0-9a-f]{20}$/.test(old))
        rmSync(join(cache, old), { recursive: true, force: true });
    }
    const beside = mkdtempSync(`${directory}-`);
    const facts: Record<string, object> = {};
    for (const [path, { type, tag, plain, br, gzip: zipped }] of files) {
      facts[path] = { type, tag, isPacked: br !== undefined };
      mkdirSync(dirname(join(beside, path)), { recursive: true });
      writeFileSync(join(beside, path), plain);
      if (br && zipped) {
        writeFileSync(join(beside, `${path}.br`), br);
        writeFileSync(join(beside, `${path}.gz`), zipped);
      }
    }
    writeFileSync(join(beside, 'files.json'), JSON.stringify(facts));
    renameSync(beside, directory);
  } catch {
    // A checkout that this account may not write to.
  }
  return files;
}
