// What npm does not do by itself after an install: puts `andromeda` where npx looks first, makes three files of Kysely's 257 modules
// (they take a quarter of a second to load at each start), and builds ssh2's cipher addon for the Node that runs Andromeda where there
// is a compiler. Without the addon ssh2 falls back to JavaScript ciphers, and every byte through the gateway costs three to nine times
// as much.
//
// npm runs this after an install with the Node of the `node` package first on the PATH. The headers are that
// package's own: a `nodedir` setting of the machine may point at another version's.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const node = join(root, 'node_modules/node/bin/node');
if (!existsSync(node)) {
  console.error('install: node_modules/node is missing; run npm ci without --omit=dev');
  process.exit(1);
}
// Without it npx installs this checkout into its cache on first use, which is slow, and fails for ever where it fails once.
const bin = join(root, 'node_modules/.bin/andromeda');
rmSync(bin, { force: true });
symlinkSync('../../scripts/andromeda', bin);

const require = createRequire(import.meta.url);
const kysely = dirname(require.resolve('kysely'));
await build({
  entryPoints: ['index.js', 'migration/index.js'].map((file) => join(kysely, file)),
  outdir: kysely,
  outbase: kysely,
  allowOverwrite: true,
  bundle: true,
  splitting: true,
  chunkNames: 'shared',
  format: 'esm',
  platform: 'node',
  target: 'node20',
});

const addon = join(dirname(require.resolve('ssh2/package.json')), 'lib/protocol/crypto');
const file = join(addon, 'build/Release/sshcrypto.node');
// Loading proves little: built for another OpenSSL, the addon loads and then fails on ChaCha20.
const probe = `
  const { ChaChaPolyCipher } = require(${JSON.stringify(file)});
  const cipher = new ChaChaPolyCipher(Buffer.alloc(64, 1));
  for (let packet = 0; packet < 2; packet++) cipher.encrypt(Buffer.alloc(64), packet);`;
// Built without object-wrap.h, it runs until an unlucky collection of garbage ends the process.
const works = () =>
  spawnSync(node, ['-e', probe]).status === 0 && !readFileSync(file).includes('RemoveEnvironmentCleanupHook');

if (!works()) {
  const headers = join(root, `node_modules/node/node_modules/node-${process.platform}-${process.arch}`);
  const gyp = require.resolve('node-gyp/bin/node-gyp.js');
  // Relative to where the compiler runs, as a flag of make's holds no spaces.
  const wrap = relative(join(addon, 'build'), join(root, 'scripts/native/object-wrap.h'));
  const openssl = spawnSync(node, ['-p', 'process.versions.openssl.split(".")[0]'], {
    encoding: 'utf8',
  }).stdout;
  const built = spawnSync(node, [gyp, 'rebuild', `--real_openssl_major=${openssl.trim()}`], {
    cwd: addon,
    encoding: 'utf8',
    env: {
      ...process.env,
      npm_config_nodedir: headers,
      CXXFLAGS: `${process.env.CXXFLAGS ?? ''} -include ${wrap}`,
    },
  });
  if (!works()) {
    rmSync(file, { force: true });
    const isCompilerHere = ['c++', 'make', 'python3'].every(
      (name) => spawnSync(name, ['--version']).status === 0,
    );
    if (isCompilerHere) console.error(`${built.stdout}\n${built.stderr}`);
    console.error(
      'Copies over SSH are slower until a C++ compiler, make and Python 3 are here: install them, then npm run postinstall.',
    );
  }
}
