/**
 * This machine with one program for 64-bit ARM in it, which QEMU runs, also where it starts itself again: the kernel is told so
 * (binfmt_misc) in a user namespace of its own, which takes Linux 6.7. What it reads and writes in /srv and as root is below `root`.
 */
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { arm64Libraries, runnerFor } from '../../../scripts/packages/emulators.ts';
import type { CleanRoot } from '../../build/clean-root.ts';
import { finished } from '../../support/heard.ts';
import { limit } from '../../support/limit.ts';

const header = '\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00';
const mask =
  '\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff';

export function createForeignRoot(root: string, executable: string): CleanRoot {
  const [qemu] = runnerFor('linux-arm64') ?? [];
  if (!qemu) throw new Error('QEMU for 64-bit ARM and its libraries are not installed (docs/release.md).');
  for (const name of ['srv', 'root']) mkdirSync(join(root, name), { recursive: true });
  const inside = `
    root=$1; shift
    until [ "$(id -u)" = 0 ]; do sleep 0.02; done
    mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
    printf %s ':qemu-aarch64:M::${header}:${mask}:${qemu}:F' > /proc/sys/fs/binfmt_misc/register
    mount --bind "$root/srv" /srv
    # Processes that it starts find their libraries without a variable.
    mount -t overlay overlay -o lowerdir=${arm64Libraries}/lib:/usr/lib /usr/lib
    exec "$@"`;
  // All accounts are the same in there. unshare itself asks newuidmap, which gives root only what /etc/subuid does.
  const script = `
    inside=$1; shift
    (
      until [ "$(readlink /proc/$$/ns/user)" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.02; done
      echo 0 0 65536 > /proc/$$/uid_map; echo 0 0 65536 > /proc/$$/gid_map
    ) > /dev/null 2>&1 &
    exec unshare --user --mount --propagation private -- sh -ec "$inside" sh "$@"`;
  const start: CleanRoot['start'] = (_, ...args) =>
    spawn('sh', ['-ec', script, 'sh', inside, root, executable, ...args], {
      env: { PATH: process.env['PATH'], HOME: join(root, 'root') },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: limit(240_000),
    });
  return {
    start,
    async run(how, ...args) {
      const { status, out: stdout, err: stderr } = await finished(start(how, ...args));
      return { status, stdout, stderr };
    },
  };
}
