/**
 * The client → `andromeda.mjs`, one file of JavaScript for Node 20 and later on any machine, and `andromeda.tgz`, which npm
 * takes for a package. Nothing of the server is in them, and the same source makes the same bytes. A checkout makes them when
 * somebody first asks for them (src/lib/packaging.ts), and keeps them until a source changes; `npm run build` does it for the executable.
 */
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import type { PortableClient } from '../../src/lib/packaging.ts';
import { packTar } from './client/tar.ts';
import { header, inAscii, noticesFor, packagesIn } from './notices.ts';
import { stampOf } from './stamp.ts';

const root = join(import.meta.dirname, '../..');
/** The oldest Node that runs it. */
export const oldestNode = 20;

/** The bytes of `andromeda.mjs`, for a Node that has this licence. */
export async function buildClient(carrier?: string): Promise<Buffer> {
  return carrier === undefined ? (await buildPortable(root)).mjs : bundle(root, carrier);
}

/** Both forms of it, from the cache where nothing changed, unless it is to be made `anew`. */
export async function buildPortable(root: string, { anew = false } = {}): Promise<PortableClient> {
  const kept = join(root, 'node_modules/.cache', `andromeda-client-${hashOfSources(root)}.mjs`);
  const mjs = (anew ? undefined : read(kept)) ?? keep(kept, await bundle(root));
  return { mjs, tgz: packPackage(root, mjs) };
}

/** What esbuild makes of the client. */
export function bundleClient(root: string) {
  return build({
    absWorkingDir: root,
    entryPoints: ['src/cli/portable.ts'],
    bundle: true,
    write: false,
    platform: 'node',
    target: `node${oldestNode}`,
    format: 'esm',
    charset: 'ascii',
    // Names stay, for what a stack says; spaces would be a third of the file.
    minifyWhitespace: true,
    // Licences are in the notices.
    legalComments: 'none',
    metafile: true,
    preserveSymlinks: true,
    logLevel: 'warning',
    inject: ['scripts/build/client/node20.ts'],
    // Native code, which is used where whoever installed the client has it.
    external: ['@napi-rs/keyring'],
    define: { buildStamp: JSON.stringify(stampOf(root)), noticesText: placeholder },
    logOverride: { 'empty-import-meta': 'error' },
    banner: { js: banner },
    plugins: [standIns(root)],
  });
}

async function bundle(root: string, carrier?: string): Promise<Buffer> {
  const { outputFiles, metafile } = await bundleClient(root);
  const notices = JSON.stringify(noticesFor(root, packagesIn(metafile), carrier));
  return Buffer.from((outputFiles[0]?.text ?? '').replace(placeholder, () => inAscii(notices)));
}

/** Stands for the notices until it is known of which packages the client is made. */
const placeholder = '"{notices}"';

const banner = `#!/usr/bin/env node
// ${header}. Notices: \`node andromeda.mjs version --licences\`.
// The client. One file for Node ${oldestNode} and later: \`node andromeda.mjs --help\`.
import { createRequire as andromedaRequire } from "node:module";
const require = andromedaRequire(import.meta.url);
if (Number.parseInt(process.versions.node) < ${oldestNode}) {
  console.error("andromeda needs Node ${oldestNode} or later; this is " + process.version + ".");
  process.exit(1);
}`;

function standIns(root: string): Plugin {
  return {
    name: 'stand-ins',
    setup(build) {
      build.onResolve({ filter: /\/packaging\.ts$/ }, () => ({
        path: join(root, 'scripts/build/client/packaging.ts'),
      }));
      // Of the manifest, the version is all that the client asks for.
      build.onLoad({ filter: /\/package\.json$/ }, ({ path }) => {
        const { version } = JSON.parse(readFileSync(path, 'utf8'));
        return { contents: JSON.stringify({ version }), loader: 'json' };
      });
    },
  };
}

/** A package for `npx` and `npm install`: the file, and what npm has to know of it. */
function packPackage(root: string, mjs: Buffer): Buffer {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const manifest = {
    name: 'andromeda',
    version,
    description: 'The client of Andromeda, access to GPU clusters',
    type: 'module',
    bin: { andromeda: 'andromeda.mjs' },
    engines: { node: `>=${oldestNode}` },
    license: 'Apache-2.0',
    private: true,
  };
  return packTar([
    {
      name: 'package/package.json',
      mode: 0o644,
      content: Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`),
    },
    { name: 'package/LICENSE', mode: 0o644, content: readFileSync(join(root, 'LICENSE')) },
    { name: 'package/andromeda.mjs', mode: 0o755, content: mjs },
  ]);
}

/** Changes with whatever the result is made of. */
function hashOfSources(root: string): string {
  const sources = globSync('src/{cli,domain,api/generated,lib}/**/*.{ts,json}', { cwd: root });
  const builders = globSync('scripts/build/{client,client/*,notices,stamp}.ts', { cwd: root });
  const hash = createHash('sha256').update(JSON.stringify(stampOf(root)));
  for (const file of [...sources, ...builders, 'LICENSE', 'package.json', 'package-lock.json'].sort()) {
    hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex').slice(0, 20);
}

function read(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

/** Writes it beside and renames it, for several programs may do so at once. Where it cannot be kept, it is made anew. */
function keep(file: string, content: Buffer): Buffer {
  try {
    const cache = dirname(file);
    mkdirSync(cache, { recursive: true });
    for (const old of readdirSync(cache)) {
      if (/^andromeda-client-[0-9a-f]{20}\.mjs$/.test(old)) rmSync(join(cache, old), { force: true });
    }
    writeFileSync(`${file}.${process.pid}`, content);
    renameSync(`${file}.${process.pid}`, file);
  } catch {
    // A checkout that this account may not write to.
  }
  return content;
}
