/**
 * Where sessions run. As root with mount namespaces: in a namespace whose /home holds the homes and whose
 * /etc/passwd knows the accounts, so that everything is as on a real login node. As root without: under the
 * account's uid, with the home where it lies. As an ordinary user: as that user.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readlinkSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf } from '../../../../lib/error-message.ts';
import type { Program } from './spawn.ts';

export type Sandbox =
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

export interface SandboxFiles {
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

/** Finds out what this process may do and sets it up. `onFallback` gets the reason when a mount namespace is not possible. */
export async function createSandbox(
  files: SandboxFiles,
  allowNamespace: boolean,
  onFallback: (reason: string) => void,
): Promise<Sandbox> {
  if (process.getuid?.() !== 0) return { kind: 'self' };
  if (!allowNamespace) return { kind: 'root' };
  try {
    return await namespace(files);
  } catch (error) {
    onFallback(messageOf(error));
    return { kind: 'root' };
  }
}

async function namespace(files: SandboxFiles): Promise<Sandbox> {
  if (!existsSync('/home')) throw new Error('there is no /home to mount on');
  const hide = (dir: string) => (`${dir}/`.startsWith('/home/') ? dir : '');
  const code = hide(files.code);
  const exec = hide(dirname(process.execPath));
  if (code || exec) {
    mkdirSync(join(files.homes, hiddenCode), { recursive: true, mode: 0o700 });
    mkdirSync(join(files.homes, hiddenExec), { recursive: true, mode: 0o700 });
  }
  const mounts = ['-ec', mountScript, 'sh', files.passwd, files.group, files.homes, code, exec];
  const holder = spawn('unshare', ['--mount', '--propagation', 'slave', '--', '/bin/sh', ...mounts], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: systemPath },
  });
  let errors = '';
  holder.stderr.on('data', (text: Buffer) => {
    errors += text.toString();
  });
  holder.stdin.on('error', () => undefined);
  try {
    const outcome = await Promise.race([
      once(holder.stdout, 'data').then(() => 'ready'),
      once(holder, 'close').then(() => 'closed'),
    ]);
    if (outcome !== 'ready') throw new Error(errors.trim() || 'unshare --mount failed');
    // The open descriptors keep the namespace alive after its first process has gone. Its root is named too: without
    // that, a process that enters it from within a chroot is outside of the sandbox.
    const fd = openSync(`/proc/${holder.pid}/ns/mnt`, 'r');
    const rootFd = openSync(`/proc/${holder.pid}/root`, 'r');
    const own = `/proc/${process.pid}/fd`;
    const sandbox: Sandbox = {
      kind: 'namespace',
      enter: [`--mount=${own}/${fd}`, `--root=${own}/${rootFd}`, `--wd=${own}/${rootFd}`],
      id: readlinkSync(`/proc/self/fd/${fd}`),
      root: `${own}/${rootFd}`,
      codeDir: code ? `/home/${hiddenCode}` : files.code,
      execDir: exec ? `/home/${hiddenExec}` : dirname(process.execPath),
    };
    await verifyRights(sandbox).catch((error: unknown) => {
      closeSync(fd);
      closeSync(rootFd);
      throw error;
    });
    return sandbox;
  } finally {
    holder.stdin.end();
  }
}

type Namespace = Sandbox & { kind: 'namespace' };
const names = ['passwd', 'group'] as const;

/** Whether the namespace shows our passwd and group. */
export function areNamesMounted(sandbox: Namespace, files: SandboxFiles): boolean {
  return names.every((name) => isMounted(sandbox, files, name));
}

function isMounted(sandbox: Namespace, files: SandboxFiles, name: (typeof names)[number]): boolean {
  const mounted = statSync(`${sandbox.root}/etc/${name}`, { throwIfNoEntry: false });
  const ours = statSync(files[name]);
  return mounted?.ino === ours.ino && mounted.dev === ours.dev;
}

/** Mounts them where it does not. */
export async function mountNames(sandbox: Namespace, files: SandboxFiles): Promise<void> {
  for (const name of names) {
    if (isMounted(sandbox, files, name)) continue;
    const mount = ['mount', '--bind', `/home/${ownDirectory}/${name}`, `/etc/${name}`];
    const child = spawn('nsenter', [...sandbox.enter, '--', ...mount], {
      env: { PATH: systemPath },
      stdio: 'ignore',
    });
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`/etc/${name} of the login node cannot be mounted again`);
  }
}

/** Enters the namespace once without rights: a process that cannot drop them must not start sessions. */
async function verifyRights(sandbox: Sandbox): Promise<void> {
  const program = asAccount(sandbox, { uid: 65534, gid: 65534 }, '/bin/sh', ['-c', 'id -u; id -G'], {
    PATH: systemPath,
  });
  const child = spawn(program.file, program.args, { env: program.env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text: Buffer) => {
      output += text.toString();
    });
  }
  await once(child, 'close');
  if (output !== '65534\n65534\n') throw new Error(`nsenter does not drop root: ${output.trim()}`);
}

export const systemPath = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';

/** The same program, started in the sandbox and with the account's rights. */
export function asAccount(
  sandbox: Sandbox,
  account: { uid: number; gid: number },
  file: string,
  args: string[],
  env: Record<string, string>,
): Program {
  const { uid, gid } = account;
  switch (sandbox.kind) {
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
        args: [...sandbox.enter, '-G', String(gid), '-S', String(uid), '--', file, ...args],
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
