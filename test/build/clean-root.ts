/** A root directory with libc, libstdc++ and a shell, and nothing else: what a clean Debian has, without Node. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, linkSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { thisMachine } from '../../scripts/build/target.ts';
import { finished } from '../support/heard.ts';
import { limit } from '../support/limit.ts';

/** What a session needs, and what the namespaces of the login node and the account of the gateway do. */
const programs = [
  '/bin/sh',
  '/bin/bash',
  '/usr/bin/id',
  '/bin/cat',
  '/usr/bin/setsid',
  '/bin/stty',
  '/usr/bin/unshare',
  '/usr/bin/prlimit',
  '/usr/bin/setpriv',
  '/bin/mount',
  '/bin/umount',
  '/usr/sbin/chroot',
];

export interface Run {
  uid: number;
  /** Left out: it can be written to. */
  home?: 'read-only';
  /** Mount options of /tmp, /dev/shm; `ro` for the directories that are on the disk. */
  tmp?: string;
  shm?: string;
  disk?: 'ro';
  /** By chroot alone, as people do, and not as a container does: what holds the directory stays within reach of root. */
  plain?: true;
}

export interface CleanRoot {
  run(how: Run, ...args: string[]): Promise<{ status: number | null; stdout: string; stderr: string }>;
  start(how: Run, ...args: string[]): ChildProcess;
}

/** Why none can be made here; false when it can. */
export const noCleanRoot: string | false =
  process.getuid?.() !== 0 || spawnSync('unshare', ['--mount', 'true']).status !== 0
    ? 'needs root and mount namespaces'
    : false;

/** The executable goes into `folder`, which must be one of those that are made. */
export function createCleanRoot(root: string, executable: string, folder = 'bin'): CleanRoot {
  for (const name of [
    'bin',
    'dev',
    'proc',
    'sys',
    'tmp',
    'root',
    'etc',
    'run',
    'var/tmp',
    'home/carl',
    'home/bin',
    'srv',
  ]) {
    mkdirSync(join(root, name), { recursive: true });
  }
  execFileSync('chmod', ['1777', join(root, 'tmp'), join(root, 'var/tmp')]);
  execFileSync('chmod', ['700', join(root, 'root'), join(root, 'home/carl')]);
  execFileSync('chmod', ['755', root]);
  execFileSync('chown', ['1000:1000', join(root, 'home/carl')]);
  writeFileSync(
    join(root, 'etc/passwd'),
    'root:x:0:0::/root:/bin/sh\ncarl:x:1000:1000::/home/carl:/bin/sh\n',
  );
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\ncarl:x:1000:\n');
  linkSync(executable, join(root, folder, 'andromeda'));
  // Addons are in the executable, and need parts of libc6 that nothing else does.
  const { addons } = thisMachine(join(import.meta.dirname, '../..'));
  const users = [executable, ...programs, ...Object.values(addons)];
  const libraries = execFileSync('ldd', users, { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g);
  const needed = new Set([...libraries].map(([, path = '']) => path));
  for (const path of needed) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    copyFileSync(path, join(root, path));
  }
  for (const path of programs) {
    copyFileSync(path, join(root, 'bin', path.split('/').at(-1) ?? ''));
  }

  const command = ({ uid, home, tmp = 'mode=1777', shm = 'mode=1777', disk, plain }: Run, args: string[]) => {
    const script = `
      root=$1; shift
      mount --bind "$root" "$root"
      ${disk === 'ro' ? 'mount -o remount,ro,bind "$root"' : ''}
      ${home ? 'mount --bind "$root/home" "$root/home"; mount -o remount,ro,bind "$root/home"' : ''}
      mount -t proc proc "$root/proc"
      mount -t tmpfs -o ${tmp} tmpfs "$root/tmp"
      mount -t tmpfs -o mode=755 tmpfs "$root/dev"
      for name in null urandom tty; do : > "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
      mkdir "$root/dev/shm" "$root/dev/pts"
      ln -s pts/ptmx "$root/dev/ptmx"
      mount -t tmpfs -o ${shm} tmpfs "$root/dev/shm"
      mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
      cd "$root"
      ${plain ? `exec chroot --userspec=${uid}:${uid} "$root" /${folder}/andromeda "$@"` : ''}
      pivot_root . .
      /bin/umount -l .
      PATH= exec /bin/chroot --userspec=${uid}:${uid} / /${folder}/andromeda "$@"`;
    return ['--mount', '--propagation', 'private', '--', 'sh', '-ec', script, 'sh', root, ...args];
  };
  const env = ({ uid }: Run) => ({
    PATH: process.env['PATH'],
    HOME: uid === 0 ? '/root' : '/home/carl',
    ANDROMEDA_DEBUG: '1',
  });
  const start: CleanRoot['start'] = (how, ...args) =>
    spawn('unshare', command(how, args), {
      env: env(how),
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: limit(60_000),
    });
  return {
    start,
    async run(how, ...args) {
      const { status, out: stdout, err: stderr } = await finished(start(how, ...args));
      return { status, stdout, stderr };
    },
  };
}
