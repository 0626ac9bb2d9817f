/**
 * The service as an RPM, for Red Hat Enterprise Linux 9, its kin, and Fedora: the files and scripts of the Debian package.
 * rpmbuild writes it, with one time for all and the name of no machine.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { config, layOut, type PackageOptions, readScript } from './layout.ts';

/** RPM's names for the architectures. */
export const rpmArchitectures = { amd64: 'x86_64', arm64: 'aarch64' } as const;

export function makeRpm(options: PackageOptions): void {
  const { work, architecture, seconds, out } = options;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const root = join(work, 'root');
  layOut(root, options);
  writeFileSync(join(work, 'andromeda.spec'), spec(options, root));
  const settings = {
    _topdir: join(work, 'top'),
    _rpmdir: work,
    _rpmfilename: 'made.rpm',
    _buildhost: 'localhost',
    _binary_payload: 'w6.zstdio',
    use_source_date_epoch_as_buildtime: '1',
    clamp_mtime_to_source_date_epoch: '1',
    // The program carries what a stripped one would lose.
    __os_install_post: '%{nil}',
    debug_package: '%{nil}',
    _build_id_links: 'none',
  };
  const defined = Object.entries(settings).flatMap(([name, value]) => ['--define', `${name} ${value}`]);
  const target = ['--target', `${rpmArchitectures[architecture]}-linux`];
  execFileSync('rpmbuild', ['-bb', '--quiet', ...target, ...defined, join(work, 'andromeda.spec')], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, SOURCE_DATE_EPOCH: String(seconds) },
  });
  renameSync(join(work, 'made.rpm'), out);
}

/** Debian's scripts get an argument, RPM's the number of versions that are left when they are done. */
function scriptOf(name: string, args: string): string {
  return `${args}\n${readScript(name).replace('#!/bin/sh\n', '').replaceAll('%', '%%')}`;
}

function spec({ version, description }: PackageOptions, root: string): string {
  const removes = 'if [ "$1" = 0 ]; then set -- remove; else set -- upgrade; fi';
  // An upgrade puts the configuration back that nobody changed, with the group that the package has.
  const configures = `if [ "$1" -gt 1 ]; then set -- configure earlier; else set -- configure; fi
systemd-sysusers andromeda.conf
chgrp andromeda ${config}`;
  return `Name: andromeda
Version: ${version.replaceAll('-', '~')}
Release: 1
Summary: ${description}
License: Apache-2.0
AutoReqProv: no
Requires: glibc >= 2.34, libgcc, libstdc++, systemd
Recommends: openssh-clients

%description
The service and its command-line client in one program. After the
installation, say in ${config} how people reach it.

%install
mkdir -p %{buildroot}
cp -al ${root}/. %{buildroot}/

%post
${scriptOf('postinst', configures)}
%preun
${scriptOf('prerm', removes)}
%postun
${scriptOf('postrm', removes)}
%files
%defattr(-,root,root,-)
%dir /etc/andromeda
%config(noreplace) %verify(not group) %attr(0640,root,root) ${config}
/usr/bin/andromeda
/usr/lib/systemd/system/andromeda*
/usr/lib/sysusers.d/andromeda.conf
/usr/share/doc/andromeda
`;
}
