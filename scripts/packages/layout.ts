/**
 * The files of the service's packages, as they lie on a machine: the program, the unit, an account by sysusers, a
 * configuration that the package manager keeps as the administrator left it.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, linkSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { firstConfig, unitFiles } from '../../src/service/host/unit/service-unit.ts';

export interface PackageOptions {
  /** A directory that is made, on the file system of `program`. */
  work: string;
  program: string;
  /** Debian's word for it. */
  architecture: 'amd64' | 'arm64';
  version: string;
  description: string;
  /** What the program is made of (CycloneDX). */
  sbom: string;
  /** The licences of everything that is in it. */
  notices: string;
  /** The time of everything in it, since 1970. */
  seconds: number;
  out: string;
}

export const config = '/etc/andromeda/andromeda.yaml';
const program = '/usr/bin/andromeda';

/** A script of the package: Debian's, which the others call with Debian's words. */
export const readScript = (name: string): string =>
  readFileSync(join(import.meta.dirname, 'debian', name), 'utf8');

export function writeInto(root: string, path: string, text: string, mode = 0o644): void {
  const file = inFolder(root, path);
  writeFileSync(file, text);
  chmodSync(file, mode);
}

export function layOut(root: string, options: PackageOptions): void {
  const madeBy = '# Made by `andromeda service install`. Yours';
  writeInto(root, config, firstConfig, 0o640);
  for (const [name, text] of unitFiles({ program, config, user: 'andromeda', writable: [], drainMs: 0 })) {
    if (!text.startsWith(madeBy)) throw new Error(`${name} does not begin with who made it.`);
    const unit = text.replace(madeBy, '# Of the package andromeda. Yours');
    writeInto(root, `/usr/lib/systemd/system/${name}`, unit);
  }
  writeInto(root, '/usr/lib/sysusers.d/andromeda.conf', readScript('andromeda.sysusers'));
  copyFileSync(options.sbom, inFolder(root, '/usr/share/doc/andromeda/sbom.cdx.json'));
  writeInto(root, '/usr/share/doc/andromeda/copyright', readFileSync(options.notices, 'utf8'));
  linkOrCopy(options.program, inFolder(root, program));
  chmodSync(join(root, program), 0o755);
  for (const directory of execFileSync('find', [root, '-type', 'd'], { encoding: 'utf8' })
    .trimEnd()
    .split('\n'))
    chmodSync(directory, 0o755);
}

function inFolder(root: string, path: string): string {
  mkdirSync(join(root, dirname(path)), { recursive: true });
  return join(root, path);
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}
