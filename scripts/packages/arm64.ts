/**
 * What `npm run build` needs to make the server for 64-bit ARM on another machine: that platform's Node, its addons, and
 * QEMU, which runs that Node where V8 compiles the program. ssh2's addon is compiled with Debian's cross compiler from
 * the sources that are in node_modules, for the headers of the Node that it will run in.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Target } from '../build/target.ts';
import { findProgram, runnerFor } from './emulators.ts';
import { fetchPackage, lockedPackage, serverNodeForArm64 } from './fetched.ts';

const platform = 'linux-arm64';
const compiler = 'aarch64-linux-gnu-g++';

/** What is missing here, as Debian's packages; empty when it can be made. */
export function missingForArm64(): string[] {
  return [
    ...(findProgram(compiler) ? [] : ['g++-aarch64-linux-gnu']),
    ...(runnerFor(platform) ? [] : ['qemu-user-static']),
  ];
}

/** Fetches and compiles below `work`, whose path is in no result. */
export function prepareArm64(root: string, work: string): Target {
  const node = fetchPackage(root, serverNodeForArm64, join(work, 'node'));
  const pty = lockedPackage(root, `@lydell/node-pty-${platform}`);
  const keyring = lockedPackage(root, `@napi-rs/keyring-${platform}-gnu`);
  // Copies: node-gyp writes beside what it is pointed to.
  cpSync(join(root, 'node_modules/nan'), join(work, 'node_modules/nan'), { recursive: true });
  return {
    platform,
    node: join(node, 'bin/node'),
    licence: join(node, 'LICENSE'),
    run: runnerFor(platform) ?? [],
    addons: {
      'better-sqlite3': join(root, `node_modules/better-sqlite3/prebuilds/${platform}.node`),
      'node-pty': join(fetchPackage(root, pty, join(work, 'pty')), 'pty.node'),
      keyring: join(fetchPackage(root, keyring, join(work, 'keyring')), `keyring.${platform}-gnu.node`),
      sshcrypto: compileCiphers(),
    },
  };

  function compileCiphers(): string {
    const folder = join(work, 'sshcrypto');
    mkdirSync(folder);
    for (const name of ['binding.gyp', 'src'])
      cpSync(join(root, 'node_modules/ssh2/lib/protocol/crypto', name), join(folder, name), {
        recursive: true,
      });
    // As scripts/install.mjs does for this machine.
    const wrap = join(root, 'scripts/native/object-wrap.h');
    const gyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
    execFileSync(process.execPath, [gyp, 'rebuild', '--arch=arm64', '--real_openssl_major=3'], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...process.env,
        npm_config_nodedir: node,
        CC: 'aarch64-linux-gnu-gcc',
        CXX: compiler,
        CXXFLAGS: `-ffile-prefix-map=${work}=. -ffile-prefix-map=${root}=. -include ${wrap}`,
      },
    });
    return join(folder, 'build/Release/sshcrypto.node');
  }
}
