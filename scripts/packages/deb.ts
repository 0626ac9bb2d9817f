/** The service as a Debian package. dpkg-deb writes it, with one time for all and nobody's names. */
import { execFileSync } from 'node:child_process';
import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { config, layOut, type PackageOptions, readScript, writeInto } from './layout.ts';

export function makeDeb(options: PackageOptions): void {
  const { work, architecture, version, description, seconds, out } = options;
  rmSync(work, { recursive: true, force: true });
  layOut(work, options);
  const size = Number(execFileSync('du', ['-sk', work], { encoding: 'utf8' }).split('\t')[0]);
  writeInto(work, '/DEBIAN/control', control({ architecture, version, description, size }));
  writeInto(work, '/DEBIAN/conffiles', `${config}\n`);
  for (const name of ['postinst', 'prerm', 'postrm'])
    writeInto(work, `/DEBIAN/${name}`, readScript(name), 0o755);
  chmodSync(join(work, 'DEBIAN'), 0o755);

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
