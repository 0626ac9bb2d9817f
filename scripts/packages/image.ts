/**
 * The service as an OCI image: Containerfile, with Debian's packages of the libraries that the program is linked with. apt's own
 * configuration says where they come from; nothing of them is run. buildah makes the image, and tar.ts the archive.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TarEntry, writeTar } from './tar.ts';

/** What is in the image besides the program. */
const packages = ['base-files', 'libc6', 'libgcc-s1', 'libstdc++6'];
/** Its own account: nothing on the host is this one's. */
const account = 10001;

export interface ImageOptions {
  /** A directory that is made. */
  work: string;
  program: string;
  /** The licences of what the program is made of. */
  notices: string;
  /** Debian's and OCI's word for it. */
  architecture: 'amd64' | 'arm64';
  version: string;
  /** The time of everything in it, since 1970. */
  seconds: number;
  out: string;
}

/** Makes the archive. Resolves to the packages in it, as `NAME VERSION`. */
export async function makeImage({
  work,
  program,
  notices,
  architecture,
  version,
  seconds,
  out,
}: ImageOptions): Promise<string[]> {
  rmSync(work, { recursive: true, force: true });
  const context = join(work, 'context');
  const root = join(context, 'root');
  mkdirSync(root, { recursive: true });
  mkdirSync(join(context, 'data'), { mode: 0o711 });
  const debs = downloadPackages(join(work, 'apt'), architecture);
  for (const deb of debs) run('dpkg-deb', '--extract', deb, root);
  prune(root);
  writeAccounts(root);
  copyFileSync(program, join(context, 'andromeda'));
  chmodSync(join(context, 'andromeda'), 0o755);
  mkdirSync(join(root, 'usr/share/doc/andromeda'), { recursive: true });
  copyFileSync(notices, join(root, 'usr/share/doc/andromeda/copyright'));

  // A storage of its own, so that no image of this machine gets into it, and this one not among them.
  const storage = [
    '--root',
    join(work, 'storage'),
    '--runroot',
    join(work, 'run'),
    '--storage-driver',
    'vfs',
  ];
  const name = `andromeda:${version}`;
  run(
    'buildah',
    ...[...storage, 'build', '--quiet', '--format', 'oci', '--platform', `linux/${architecture}`],
    ...['--timestamp', String(seconds), '--label', `org.opencontainers.image.version=${version}`],
    ...['--label', 'org.opencontainers.image.title=andromeda', '--tag', name],
    ...['--file', join(import.meta.dirname, 'Containerfile'), context],
  );
  const layout = join(work, 'layout');
  run('buildah', ...storage, 'push', '--quiet', name, `oci:${layout}:${name}`);
  await writeTar(out, entriesOf(layout), { seconds });
  const said = debs.map(
    (deb) => `${run('dpkg-deb', '--field', deb, 'Package')} ${run('dpkg-deb', '--field', deb, 'Version')}`,
  );
  rmSync(work, { recursive: true });
  return said;
}

/** The packages' files, by apt, with a memory of its own: the machine's may have another architecture. */
function downloadPackages(directory: string, architecture: string): string[] {
  for (const part of ['state/lists/partial', 'cache/archives/partial', 'debs'])
    mkdirSync(join(directory, part), { recursive: true });
  writeFileSync(join(directory, 'status'), '');
  const settings = [
    `APT::Architecture=${architecture}`,
    `APT::Architectures=${architecture}`,
    `Dir::State=${join(directory, 'state')}`,
    `Dir::State::status=${join(directory, 'status')}`,
    `Dir::Cache=${join(directory, 'cache')}`,
    'APT::Sandbox::User=root',
    'Acquire::Languages=none',
  ].flatMap((setting) => ['--option', setting]);
  run('apt-get', '-qq', ...settings, 'update');
  const debs = join(directory, 'debs');
  execFileSync('apt-get', ['-qq', ...settings, 'download', ...packages], {
    cwd: debs,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const found = globSync('*.deb', { cwd: debs }).sort();
  if (found.length !== packages.length) throw new Error(`apt gave ${found.join(', ')}.`);
  return found.map((name) => join(debs, name));
}

/** What people read on a machine that they log in to, and character sets that Node brings itself. */
function prune(root: string): void {
  const useless = [
    'usr/share/{man,info,lintian,locale,base-files}',
    'usr/share/doc/*/*[!t]',
    'usr/lib/*/gconv',
    'etc/profile*',
    'home',
    'root',
  ];
  for (const path of globSync(useless, { cwd: root }))
    rmSync(join(root, path), { recursive: true, force: true });
}

function writeAccounts(root: string): void {
  const home = '/var/lib/andromeda';
  writeFileSync(
    join(root, 'etc/passwd'),
    `root:x:0:0::/:/sbin/nologin\nandromeda:x:${account}:${account}::${home}:/sbin/nologin\n`,
  );
  writeFileSync(join(root, 'etc/group'), `root:x:0:\nandromeda:x:${account}:\n`);
  writeFileSync(join(root, 'etc/nsswitch.conf'), 'passwd: files\ngroup: files\nhosts: files dns\n');
  mkdirSync(join(root, 'etc/andromeda'));
  for (const name of ['etc/passwd', 'etc/group', 'etc/nsswitch.conf']) chmodSync(join(root, name), 0o644);
}

function entriesOf(layout: string): TarEntry[] {
  const paths = globSync('**', { cwd: layout, withFileTypes: true })
    .map((entry) => ({
      name: join(entry.parentPath, entry.name).slice(layout.length + 1),
      isFile: entry.isFile(),
    }))
    .filter(({ name }) => name !== '')
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return paths.map(({ name, isFile }) =>
    isFile ? { name, mode: 0o644, content: { path: join(layout, name) } } : { name: `${name}/`, mode: 0o755 },
  );
}

function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}
