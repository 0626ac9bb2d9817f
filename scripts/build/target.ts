/** What an executable is made for: this machine, or one whose parts a release has prepared (scripts/packages/arm64.ts). */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export interface Target {
  /** In Node's words: `linux-x64`. */
  platform: string;
  /** The Node that carries the program. */
  node: string;
  /** The licence of that Node and of what it is made of. */
  licence: string;
  /** What is typed before an executable of that platform. */
  run: string[];
  /** Where its native addons lie. */
  addons: Record<'better-sqlite3' | 'node-pty' | 'keyring' | 'sshcrypto', string>;
}

export function thisMachine(root: string): Target {
  const platform = `${process.platform}-${process.arch}`;
  const modules = join(root, 'node_modules');
  return {
    platform,
    node: process.execPath,
    licence: join(modules, `node/node_modules/node-${platform}/LICENSE`),
    run: [],
    addons: {
      'better-sqlite3': join(modules, `better-sqlite3/prebuilds/${platform}.node`),
      'node-pty': join(modules, `@lydell/node-pty-${platform}/pty.node`),
      keyring: join(modules, `@napi-rs/keyring-${platform}-gnu/keyring.${platform}-gnu.node`),
      sshcrypto: join(modules, 'ssh2/lib/protocol/crypto/build/Release/sshcrypto.node'),
    },
  };
}

/** What a build needs that an install may have left out; empty when it can be made. */
export function missingFor({ node, licence, addons }: Target): string[] {
  return [node, licence, ...Object.values(addons)].filter((file) => !existsSync(file));
}
