/**
 * Where sessions run. As root with mount namespaces: in a namespace whose /home holds the homes and whose
 * /etc/passwd knows the accounts, so that everything looks as on a real login node. As root without: under the
 * account's uid, with the home where it lies. As an ordinary user: as that user.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readlinkSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Program } from './spawn.ts';

export type Place =
  | {
      kind: 'namespace';
      enter: readonly string[];
      id: string;
      /** Its root directory, as this process reaches it. */
      root: string;
      codeDir: string;
      execDir: string;
    }
  | { kind: 'root' }
  | { kind: 'self' };

export interface PlaceDirs {
  homes: string;
  passwd: string;
  group: string;
  /** The folder with the program's own sources or, in a single-file executable, the executable. */
  code: string;
}

/** Below the homes, and so below /home in the namespace: what is root's alone. */
export const ownDirectory = '.andromeda';
const hiddenCode = `${ownDirectory}/code`;
const hiddenExec = `${ownDirectory}/exec`;

/**
 * Mounts, from the sources to /home last, because each of the others may itself lie below /home. The program
 * and its code, if they do, stay reachable for root under /home/.andromeda: the sftp server needs them.
 */
const mountScript = `
mount --bind "$1" /etc/passwd
mount --bind "$2" /etc/group
if [ -n "$4" ]; then mount --bind "$4" "$3/${hiddenCode}"; fi
if [ -n "$5" ]; then mount --bind "$5" "$3/${hiddenExec}"; fi
mount --rbind "$3" /home
echo ready
read -r _
`;

/** Finds out what this process may do and sets it up. `note` hears why a better place was not possible. */
export async function choosePlace(
  dirs: PlaceDirs,
  allowNamespace: boolean,
  note: (reason: string) => void,
): Promise<Place> {
  if (process.getuid?.() !== 0) return { kind: 'self' };
  if (!allowNamespace) return { kind: 'root' };
  try {
    return await namespace(dirs);
  } catch (error) {
    note(error instanceof Error ? error.message : String(error));
    return { kind: 'root' };
  }
}

async function namespace(dirs: PlaceDirs): Promise<Place> {
  if (!existsSync('/home')) throw new Error('there is no /home to mount on');
  const hide = (dir: string) => (`${dir}/`.startsWith('/home/') ? dir : '');
  const code = hide(dirs.code);
  const exec = hide(dirname(process.execPath));
  if (code || exec) {
    mkdirSync(join(dirs.homes, hiddenCode), { recursive: true, mode: 0o700 });
    mkdirSync(join(dirs.homes, hiddenExec), { recursive: true, mode: 0o700 });
  }
  const holder = spawn(
    'unshare',
    [
      '--mount',
      '--propagation',
      'slave',
      '--',
      '/bin/sh',
      '-ec',
      mountScript,
      'sh',
      dirs.passwd,
      dirs.group,
      dirs.homes,
      code,
      exec,
    ],
    { stdio: ['pipe', 'pipe', 'pipe'], env: { PATH: systemPath } },
  );
  let complaint = '';
  holder.stderr.on('data', (text: Buffer) => {
    complaint += text.toString();
  });
  holder.stdin.on('error', () => undefined);
  try {
    const outcome = await Promise.race([
      once(holder.stdout, 'data').then(() => 'ready'),
      once(holder, 'close').then(() => 'closed'),
    ]);
    if (outcome !== 'ready') throw new Error(complaint.trim() || 'unshare --mount failed');
    // The open descriptors keep the namespace alive after its first process has gone. Its root is named too: without
    // that, whoever enters it from within a chroot finds himself outside.
    const fd = openSync(`/proc/${holder.pid}/ns/mnt`, 'r');
    const rootFd = openSync(`/proc/${holder.pid}/root`, 'r');
    const own = `/proc/${process.pid}/fd`;
    const place: Place = {
      kind: 'namespace',
      enter: [`--mount=${own}/${fd}`, `--root=${own}/${rootFd}`, `--wd=${own}/${rootFd}`],
      id: readlinkSync(`/proc/self/fd/${fd}`),
      root: `${own}/${rootFd}`,
      codeDir: code ? `/home/${hiddenCode}` : dirs.code,
      execDir: exec ? `/home/${hiddenExec}` : dirname(process.execPath),
    };
    await prove(place).catch((error: unknown) => {
      closeSync(fd);
      closeSync(rootFd);
      throw error;
    });
    return place;
  } finally {
    holder.stdin.end();
  }
}

type Namespace = Place & { kind: 'namespace' };
const names = ['passwd', 'group'] as const;

/** Whether the namespace shows our passwd and group. */
export function areNamesShown(place: Namespace, dirs: PlaceDirs): boolean {
  return names.every((name) => isShown(place, dirs, name));
}

function isShown(place: Namespace, dirs: PlaceDirs, name: (typeof names)[number]): boolean {
  const seen = statSync(`${place.root}/etc/${name}`, { throwIfNoEntry: false });
  const ours = statSync(dirs[name]);
  return seen?.ino === ours.ino && seen.dev === ours.dev;
}

/** Mounts them where it does not. */
export async function showNames(place: Namespace, dirs: PlaceDirs): Promise<void> {
  for (const name of names) {
    if (isShown(place, dirs, name)) continue;
    const mount = ['mount', '--bind', `/home/${ownDirectory}/${name}`, `/etc/${name}`];
    const child = spawn('nsenter', [...place.enter, '--', ...mount], {
      env: { PATH: systemPath },
      stdio: 'ignore',
    });
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`/etc/${name} of the login node cannot be mounted again`);
  }
}

/** Enters the namespace once as somebody without rights: whoever cannot drop them must not start sessions. */
async function prove(place: Place): Promise<void> {
  const program = asAccount(place, { uid: 65534, gid: 65534 }, '/bin/sh', ['-c', 'id -u; id -G'], {
    PATH: systemPath,
  });
  const child = spawn(program.file, program.args, { env: program.env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text: Buffer) => {
      said += text.toString();
    });
  }
  await once(child, 'close');
  if (said !== '65534\n65534\n') throw new Error(`nsenter does not drop root: ${said.trim()}`);
}

export const systemPath = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';

/** The same program, started in its place and with the account's rights. */
export function asAccount(
  place: Place,
  account: { uid: number; gid: number },
  file: string,
  args: string[],
  env: Record<string, string>,
): Program {
  const { uid, gid } = account;
  switch (place.kind) {
    case 'self':
      return { file, args, env };
    case 'root':
      requireOrdinary(account);
      return { file, args, env, uid, gid };
    case 'namespace':
      requireOrdinary(account);
      return {
        file: 'nsenter',
        // With -S and -G nsenter also drops the supplementary groups.
        args: [...place.enter, '-G', String(gid), '-S', String(uid), '--', file, ...args],
        env,
      };
  }
}

/** Root's number, or one that is no number, never gets a session. */
export function requireOrdinary(account: { uid: number; gid: number }): void {
  for (const id of [account.uid, account.gid]) {
    if (!Number.isInteger(id) || id < 1 || id > 0xfffffffe)
      throw new Error(`No session runs as uid or gid ${id}.`);
  }
}
