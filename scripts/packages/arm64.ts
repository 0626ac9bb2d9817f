/**
 * What `npm run build` needs to make the server for 64-bit ARM on another machine: that platform's Node, its addons, and
 * QEMU, which runs that Node where V8 compiles the program. Addons that npm compiles are compiled with Debian's cross compiler
 * from the sources that are in node_modules, for the headers of the Node that they will run in.
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
  const keyring = lockedPackage(root, `@napi-rs/keyring-${platform}-gnu`);
  // Copies: node-gyp writes beside what it is pointed to.
  for (const headers of ['nan', 'node-addon-api'])
    cpSync(join(root, 'node_modules', headers), join(work, 'node_modules', headers), { recursive: true });
  return {
    platform,
    node: join(node, 'bin/node'),
    run: runnerFor(platform) ?? [],
    addons: {
      'better-sqlite3': join(root, `node_modules/better-sqlite3/prebuilds/${platform}.node`),
      'node-pty': compile('node-pty', 'pty.node'),
      keyring: join(fetchPackage(root, keyring, join(work, 'keyring')), `keyring.${platform}-gnu.node`),
      sshcrypto: compile('ssh2/lib/protocol/crypto', 'sshcrypto.node', '--real_openssl_major=3'),
    },
  };

  function compile(source: string, file: string, ...flags: string[]): string {
    const folder = join(work, file);
    mkdirSync(folder);
    for (const name of ['binding.gyp', 'src'])
      cpSync(join(root, 'node_modules', source, name), join(folder, name), { recursive: true });
    // As scripts/install.mjs does for this machine.
    const wrap = join(root, 'scripts/native/object-wrap.h');
    const gyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
    execFileSync(process.execPath, [gyp, 'rebuild', '--arch=arm64', ...flags], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...process.env,
        npm_config_nodedir: node,
        CC: 'aarch64-linux-gnu-gcc',
        CXX: compiler,
        CXXFLAGS: `-ffile-prefix-map=${work}=. -ffile-prefix-map=${root}=. ${file === 'sshcrypto.node' ? `-include ${wrap}` : ''}`,
      },
    });
    return join(folder, 'build/Release', file);
  }
}
