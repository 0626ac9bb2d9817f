/** What a release can consist of, and what making each part asks of the machine. */
import { missingForArm64 } from './arm64.ts';
import { findProgram } from './emulators.ts';

export const parts = ['linux-x64', 'linux-arm64', 'clients', 'deb', 'rpm', 'image'] as const;
export type Part = (typeof parts)[number];
export type ServerPart = 'linux-x64' | 'linux-arm64';

const here = `${process.platform}-${process.arch}`;

/** The parts that were asked for, else all that this machine can make. Throws a sentence about a name that is none. */
export function partsAskedFor(only: string | undefined): Part[] {
  if (only === undefined) return parts.filter((part) => part !== 'linux-x64' || here === part);
  const names = only.split(',');
  const unknown = names.find((name) => !parts.some((part) => part === name));
  if (unknown !== undefined) throw new Error(`There is no part ${unknown}; there are ${parts.join(', ')}.`);
  return parts.filter((part) => names.includes(part));
}

/** The servers that the parts need: packages and images are made of them. */
export function serversFor(chosen: readonly Part[]): ServerPart[] {
  const own: ServerPart = process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64';
  const servers = chosen.filter((part): part is ServerPart => part.startsWith('linux-'));
  const isPacked = chosen.some((part) => ['deb', 'rpm', 'image'].includes(part));
  return servers.length === 0 && isPacked ? [own] : servers;
}

/** A sentence for each thing that is missing; empty when the parts can be made. */
export function obstaclesTo(chosen: readonly Part[]): string[] {
  const debian = new Set<string>();
  const servers = serversFor(chosen);
  if (servers.includes('linux-arm64') && here !== 'linux-arm64')
    for (const name of missingForArm64()) debian.add(name);
  if (chosen.includes('image') && !findProgram('buildah')) debian.add('buildah');
  if (chosen.includes('rpm') && !findProgram('rpmbuild')) debian.add('rpm');
  if (chosen.includes('deb') && !findProgram('dpkg-deb')) debian.add('dpkg');
  return [
    ...(debian.size > 0
      ? [`install Debian's ${[...debian].join(', ')}, or leave parts out with --only`]
      : []),
    ...(servers.includes('linux-x64') && here !== 'linux-x64'
      ? ['the server for linux-x64 is made on linux-x64']
      : []),
    ...(findProgram('npm') ? [] : ['npm is not installed']),
  ];
}
