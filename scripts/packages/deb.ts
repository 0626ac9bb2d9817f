/**
 * The service as a Debian package: the program, the unit, an account by sysusers, a configuration that dpkg keeps as the
 * administrator left it. dpkg-deb writes it, with one time for all and nobody's names.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { firstConfig, unitFiles } from '../../src/service/host/unit/service-unit.ts';

export interface DebOptions {
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

const program = '/usr/bin/andromeda';
const config = '/etc/andromeda/andromeda.yaml';
const scripts = join(import.meta.dirname, 'debian');

export function makeDeb(options: DebOptions): void {
  const { work, architecture, version, description, seconds, out } = options;
  rmSync(work, { recursive: true, force: true });
  const write = (path: string, text: string, mode = 0o644) => {
    mkdirSync(join(work, dirname(path)), { recursive: true });
    writeFileSync(join(work, path), text);
    chmodSync(join(work, path), mode);
  };
  const read = (name: string) => readFileSync(join(scripts, name), 'utf8');
  const madeBy = '# Made by `andromeda service install`. Yours';

  write(config, firstConfig, 0o640);
  for (const [name, text] of unitFiles({ program, config, user: 'andromeda', writable: [], drainMs: 0 })) {
    if (!text.startsWith(madeBy)) throw new Error(`${name} does not begin with who made it.`);
    write(`/usr/lib/systemd/system/${name}`, text.replace(madeBy, '# Of the package andromeda. Yours'));
  }
  write('/usr/lib/sysusers.d/andromeda.conf', read('andromeda.sysusers'));
  copyFileSync(options.sbom, inFolder(work, '/usr/share/doc/andromeda/sbom.cdx.json'));
  write('/usr/share/doc/andromeda/copyright', readFileSync(options.notices, 'utf8'));
  linkOrCopy(options.program, inFolder(work, program));
  chmodSync(join(work, program), 0o755);
  const size = Number(execFileSync('du', ['-sk', work], { encoding: 'utf8' }).split('\t')[0]);
  write('/DEBIAN/control', control({ architecture, version, description, size }));
  write('/DEBIAN/conffiles', `${config}\n`);
  for (const name of ['postinst', 'prerm', 'postrm']) write(`/DEBIAN/${name}`, read(name), 0o755);
  for (const directory of execFileSync('find', [work, '-type', 'd'], { encoding: 'utf8' })
    .trimEnd()
    .split('\n'))
    chmodSync(directory, 0o755);

  // One thread: with several, what is compressed depends on how many there are.
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zzstd', '-z6', '--threads-max=1', '--build', work, out], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, SOURCE_DATE_EPOCH: String(seconds) },
  });
}

interface Control {
  architecture: string;
  version: string;
  description: string;
  size: number;
}

function control({ architecture, version, description, size }: Control): string {
  return `Package: andromeda
Version: ${version}
Architecture: ${architecture}
Maintainer: Andromeda <andromeda@localhost>
Installed-Size: ${size}
Depends: libc6 (>= 2.34), libgcc-s1, libstdc++6 (>= 10), systemd | systemd-standalone-sysusers
Recommends: openssh-client, systemd
Section: net
Priority: optional
Description: ${description}
 The service and its command-line client in one program. After the
 installation, say in ${config} how people reach it.
`;
}

function inFolder(work: string, path: string): string {
  mkdirSync(join(work, dirname(path)), { recursive: true });
  return join(work, path);
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}
