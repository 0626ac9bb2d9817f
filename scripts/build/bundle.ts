/**
 * The program's source → its parts, each one script, and the native addons that they ask for.
 *
 * A dynamic import in an entry file begins a part of its own; so does a module that must be the same one everywhere
 * (an error class that is asked for by `instanceof`). Any other module lies in each part that needs it: the parts share
 * a process and nothing else.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { partsKey } from './executable/parts.ts';
import { inAscii } from './notices.ts';
import { stampOf } from './stamp.ts';
import { missingFor, type Target, thisMachine } from './target.ts';

/** Files whose dynamic imports begin parts. */
const entries = [
  'src/main.ts',
  'src/host-commands.ts',
  'src/sync/simulated/login-node/main.ts',
  'src/sync/kubernetes/client.ts',
  'src/service/certificates/order.ts',
];
const shared = ['src/domain/error.ts'];
/** Parts that run on threads of their own. */
const workers = ['store/engine/sqlite/checkpoint-worker'];
const start = 'scripts/build/executable/start.ts';

export interface Bundle {
  /** What the executable runs first. */
  start: string;
  /** By name: an expression that is a function of (exports, require, module). */
  parts: Map<string, string>;
  /** By the name they are unpacked under, which begins with their SHA-256: where they lie now. */
  addons: Map<string, string>;
}

/** Bundles the program below `root`. Throws where a module is missing, or asks where its own file is. */
export async function bundleProgram(
  root: string,
  target: Target = thisMachine(root),
  changes: readonly Plugin[] = [],
): Promise<Bundle> {
  const addons = new Map<string, string>();
  const waiting = new Set(workers);
  const options: BuildOptions = {
    absWorkingDir: root,
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    charset: 'ascii',
    legalComments: 'none',
    // Names of files are in the bundle, and should not say where node_modules really is.
    preserveSymlinks: true,
    logLevel: 'warning',
    // The first is asked for by code that then does not use it, the second by executable/packaging.ts.
    define: { __dirname: '"/"', buildStamp: JSON.stringify(stampOf(root)) },
    // The parts are scripts, which have no import() of their own.
    // Text of tagged templates stays as it is written, whatever the charset, and the parts are read as Latin-1: so there are none.
    supported: { 'dynamic-import': false, 'template-literal': false },
    // Nothing lies beside the executable, so no code may look there (src/lib/packaging.ts).
    logOverride: { 'empty-import-meta': 'error' },
    plugins: [
      ...changes,
      parts(root, (part) => waiting.add(part)),
      nativeAddons(target, addons),
      standIns(root),
    ],
  };
  // Those that are known so far at once: modules that several have are read once.
  const bundled = async (entries: readonly string[]) => {
    const { outputFiles } = await build({
      ...options,
      outdir: root,
      outbase: root,
      entryPoints: [...entries],
    });
    return (outputFiles ?? []).map(({ path, text }): [string, string] => [
      relative(root, path).replace(/\.js$/, ''),
      inAscii(text),
    ]);
  };
  const [[, first = ''] = []] = await bundled([start]);
  const made = new Map<string, string>();
  while (made.size < waiting.size) {
    const next = [...waiting].filter((part) => !made.has(part)).map((part) => `src/${part}.ts`);
    for (const [file, text] of await bundled(next))
      made.set(relative('src', file), `(function (exports, require, module) {${text}\n})`);
  }
  const sorted = <T>(map: Map<string, T>) => new Map([...map].sort(([a], [b]) => (a < b ? -1 : 1)));
  return { start: first, parts: sorted(made), addons: sorted(addons) };
}

function parts(root: string, add: (part: string) => void): Plugin {
  return {
    name: 'parts',
    setup(build) {
      build.onResolve({ filter: /^\..*\.ts$/ }, ({ path, importer, resolveDir, kind }) => {
        const file = relative(root, join(resolveDir, path));
        const begins = kind === 'dynamic-import' && entries.includes(relative(root, importer));
        if (kind === 'entry-point' || !(begins || shared.includes(file))) return undefined;
        const part = file.slice('src/'.length, -'.ts'.length);
        add(part);
        return { path: part, namespace: 'part' };
      });
      build.onLoad({ filter: /./, namespace: 'part' }, ({ path }) => ({
        contents: `module.exports = globalThis.${partsKey}.code(${JSON.stringify(path)});`,
      }));
    },
  };
}

/** Addons that are found by searching directories at run time, and where that search is. */
const searches: {
  search: RegExp;
  name: 'better-sqlite3' | 'node-pty' | 'keyring';
  contents(load: string): string;
}[] = [
  {
    search: /better-sqlite3\/lib\/binding\.js$/,
    name: 'better-sqlite3',
    contents: (load) => `exports.getBinding = () => ${load};`,
  },
  {
    search: /@lydell\/node-pty\/requireBinary\.js$/,
    name: 'node-pty',
    contents: (load) => `exports.requireBinary = () => ${load};`,
  },
  {
    search: /@napi-rs\/keyring\/index\.js$/,
    name: 'keyring',
    contents: (load) => `module.exports = ${load};`,
  },
];

function nativeAddons(target: Target, addons: Map<string, string>): Plugin {
  const load = (name: keyof Target['addons']) => {
    const file = target.addons[name];
    const hash = createHash('sha256').update(readFileSync(file)).digest('hex');
    const unpacked = `${hash}-${name}.node`;
    addons.set(unpacked, file);
    return `globalThis.${partsKey}.addon(${JSON.stringify(unpacked)})`;
  };
  return {
    name: 'native-addons',
    setup(build) {
      for (const { search, name, contents } of searches) {
        build.onLoad({ filter: search }, () => ({ contents: contents(load(name)) }));
      }
      // One of this machine's: the target's is another file.
      build.onLoad({ filter: /\.node$/ }, ({ path }) => {
        const name = basename(path, '.node');
        if (name !== 'sshcrypto') throw new Error(`${path} is an addon that no target has.`);
        return { contents: `module.exports = ${load(name)};` };
      });
      // ssh2 does without it, and so do we: it is built nowhere.
      build.onResolve({ filter: /^cpu-features$/ }, ({ path }) => ({ path, namespace: 'absent' }));
      build.onLoad({ filter: /./, namespace: 'absent' }, ({ path }) => ({
        contents: `throw new Error(${JSON.stringify(`${path} is not part of the program`)});`,
      }));
    },
  };
}

function standIns(root: string): Plugin {
  return {
    name: 'stand-ins',
    setup(build) {
      build.onResolve({ filter: /\/packaging\.ts$/ }, () => ({
        path: join(root, 'scripts/build/executable/packaging.ts'),
      }));
      // commander needs it only for commands that are programs of their own, and it takes two milliseconds to load.
      build.onResolve({ filter: /^node:child_process$/ }, ({ path, importer }) =>
        importer.includes('/node_modules/commander/') ? { path, namespace: 'when-called' } : undefined,
      );
      build.onLoad({ filter: /./, namespace: 'when-called' }, ({ path }) => ({
        contents: `exports.spawn = (...args) => process.getBuiltinModule('${path}').spawn(...args);`,
      }));
      // A bundler follows `require`, and not what createRequire makes.
      build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        const plain = text.replace('const require = createRequire(import.meta.url);', '');
        return plain === text ? undefined : { contents: plain, loader: 'ts' };
      });
    },
  };
}

/** What the bundle for this machine needs that an install may have left out; empty when it can be made. */
export function missingForBundle(root: string): string[] {
  return missingFor(thisMachine(root)).map((file) => relative(root, file));
}
