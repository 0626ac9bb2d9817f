/**
 * `npm run build`: makes dist/andromeda, the whole program in one file that needs no Node (docs/decisions/0013).
 *
 *   source → bundle.ts (parts and addons) → compile.ts (what V8 makes of the parts) → Node packs a blob of all
 *          → elf.ts (into a copy of Node)
 *
 * `--out FILE` writes it somewhere else, `--notices FILE` also the licences of what is in it. `--target FILE` makes it for another machine (target.ts, as JSON). `--changes FILE` is a plugin of
 * esbuild's for the source, which tests of upgrades make the version after this one with.
 */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Plugin } from 'esbuild';
import { bundleProgram } from './bundle.ts';
import { buildPortable } from './client.ts';
import { buildConsole } from './console.ts';
import { injectBlob } from './elf.ts';
import { noticesFor } from './notices.ts';
import { packagesOfServer } from './packages.ts';
import { missingFor, type Target, thisMachine } from './target.ts';

const root = join(import.meta.dirname, '../..');
const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    notices: { type: 'string' },
    target: { type: 'string' },
    changes: { type: 'string' },
  },
});
const out = resolve(values.out ?? join(root, 'dist/andromeda'));
const target: Target = values.target ? JSON.parse(readFileSync(values.target, 'utf8')) : thisMachine(root);
const changes: Plugin[] = values.changes ? [(await import(resolve(values.changes))).default] : [];
const missing = missingFor(target);
if (missing.length > 0) {
  console.error(`build: ${missing.join(', ')} missing; run npm ci first`);
  process.exit(1);
}

mkdirSync(dirname(out), { recursive: true });
const work = mkdtempSync(join(dirname(out), '.build-'));
try {
  const { start, parts, addons } = await bundleProgram(root, target, changes);
  for (const [name, source] of parts) writeFileSync(inWork(`assets/code/${name}`), source);
  for (const [file, path] of addons) copyFileSync(path, inWork(`assets/addon/${file}`));
  const src = join(root, 'src');
  for (const text of globSync('**/*.{js,json,sh,ps1}', {
    cwd: src,
    exclude: ['**/tsconfig.json', 'console/app/**'],
  })) {
    copyFileSync(join(src, text), inWork(`assets/text/${text}`));
  }
  await addConsole();
  writeFileSync(inWork('assets/text/notices.txt'), await noticesOfServer());
  const client = await buildPortable(root);
  writeFileSync(inWork('assets/bytes/client/andromeda.mjs'), client.mjs);
  writeFileSync(inWork('assets/bytes/client/andromeda.tgz'), client.tgz);
  const run = (file: string, ...args: string[]) => {
    const [command = '', ...rest] = [...target.run, file, ...args];
    return execFileSync(command, rest, {
      cwd: work,
      stdio: 'pipe',
      encoding: 'utf8',
      // What comes out of Node's cache of compiled code is numbered otherwise than what is compiled.
      env: { ...process.env, XDG_CACHE_HOME: work, XDG_STATE_HOME: work, NODE_DISABLE_COMPILE_CACHE: '1' },
    });
  };
  const flags = [
    '--hash-seed=1',
    '--random-seed=1',
    '--no-sparkplug',
    '--no-flush-bytecode',
    '--no-concurrent-recompilation',
    '--invocation-count-for-maglev=1000000000',
    // With so much room no garbage is collected, which would leave traces (compile.ts).
    '--min-semi-space-size=256',
    '--max-semi-space-size=256',
    '--initial-old-space-size=2000',
  ];
  run(
    target.node,
    ...flags,
    join(import.meta.dirname, 'compile.ts'),
    // Below the directory that it runs in: another name of that would be another order of what V8 numbers.
    'assets',
    ...parts.keys(),
  );
  writeFileSync(inWork('start.js'), start);
  // Once more, for threads.
  writeFileSync(inWork('assets/start.js'), start);
  writeFileSync(inWork('config.json'), JSON.stringify(blobConfig()));
  // The blob is the same on every platform, and Node packs it as fast as this machine is.
  execFileSync(process.execPath, ['--experimental-sea-config', inWork('config.json')], {
    cwd: work,
    stdio: 'pipe',
  });

  const executable = injectBlob(readFileSync(target.node), readFileSync(inWork('blob')));
  writeFileSync(inWork('executable'), executable, { mode: 0o755 });
  const output = run(inWork('executable'), 'version');
  if (/not loaded/.test(output)) throw new Error(`what was built says:\n${output}`);
  // A rename, because the old one may be running.
  renameSync(inWork('executable'), out);
  console.log(`${out}: ${(executable.length / 2 ** 20).toFixed(1)} MiB`);
} finally {
  rmSync(work, { recursive: true });
}

async function noticesOfServer(): Promise<string> {
  const packages = await packagesOfServer(root, target.platform);
  const notices = noticesFor(root, packages, readFileSync(target.licence, 'utf8'));
  if (values.notices) writeFileSync(values.notices, notices);
  return notices;
}

/** The web console's files, packed once here instead of at every request. */
async function addConsole(): Promise<void> {
  const files = await buildConsole(root);
  const facts: Record<string, object> = {};
  for (const [path, { type, tag, plain, br, gzip }] of files) {
    facts[path] = { type, tag, isPacked: br !== undefined };
    writeFileSync(inWork(`assets/bytes/console/${path}`), plain);
    if (br) writeFileSync(inWork(`assets/bytes/console/${path}.br`), br);
    if (gzip) writeFileSync(inWork(`assets/bytes/console/${path}.gz`), gzip);
  }
  writeFileSync(inWork('assets/text/console/files.json'), JSON.stringify(facts));
}

/** The path of a file in the working directory; makes its folder. */
function inWork(name: string): string {
  const file = join(work, name);
  mkdirSync(dirname(file), { recursive: true });
  return file;
}

function blobConfig(): object {
  const assets = join(work, 'assets');
  const names = globSync('**', { cwd: assets, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(assets.length + 1))
    .sort();
  return {
    // Relative: the name becomes a part of the blob.
    main: 'start.js',
    output: 'blob',
    disableExperimentalSEAWarning: true,
    // Node's own would differ from build to build, and start.js is small: the parts carry theirs.
    useCodeCache: false,
    // As scripts/andromeda has them.
    execArgv: ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=16'],
    // NODE_OPTIONS are for Node, and nobody who runs Andromeda should have to know that it is one.
    execArgvExtension: 'none',
    assets: Object.fromEntries(names.map((name) => [name, join(assets, name)])),
  };
}
