/**
 * The sandboxes of sessions. As root in namespaces: the login node's process and its children have their own mounts,
 * processes and network, which is only a loopback; /home holds the homes, /etc is a copy with the accounts, and directories
 * that others write to (/tmp) or listen in (/run, /var/lib) are empty. The kernel kills all of it with the first process. As
 * root without namespaces: under the account's uid, in the home's real directory. As an ordinary user: as that user.
 *
 * No session can gain privileges (no_new_privs): sudo, su, crontab and at fail. As root its resources are limited too.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { codeRoot, loginNodeArguments } from '../../../lib/packaging.ts';
import type { Program } from './running.ts';

export type Sandbox = 'namespaces' | 'root' | 'self';

/** Directory that only root can read, below the homes and so below /home in the namespaces. */
export const ownDirectory = '.andromeda';

export const systemPath = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';

/** Limits of each process; `nproc` counts the processes of each person, root's own excepted. */
const limits = [
  '--nproc=256',
  '--nofile=4096',
  `--data=${2 * 2 ** 30}`,
  `--fsize=${4 * 2 ** 30}`,
  '--core=0',
];

const apart = ['--mount', '--net', '--pid', '--ipc', '--fork', '--kill-child', '--propagation', 'slave'];

/** The directories that mounts of a login node hide. */
const hidden = ['/home', '/run', '/var/lib', '/tmp', '/var/tmp', '/dev/shm', '/proc', '/sys'];

const ownMachine = `
mount -t proc proc /proc
mount -t sysfs sysfs /sys
echo 0x9 > /sys/class/net/lo/flags
for dir in /run /var/lib; do
  if [ -d $dir ]; then mount -t tmpfs -o nosuid,nodev,mode=755,size=64m tmpfs $dir; fi
done
for dir in /tmp /var/tmp /dev/shm; do
  if [ -d $dir ]; then mount -t tmpfs -o nosuid,nodev,mode=1777,size=256m tmpfs $dir; fi
done
`;

/**
 * Mounts sources before the directories that hide them, as a source may be below one. Node and its code stay reachable for
 * root if hidden. The shell stays as PID 1 and reaps orphaned processes.
 */
const loginNode = `
own=$1/${ownDirectory}
mount -t tmpfs -o nosuid,nodev,mode=755,size=64m tmpfs "$own/etc"
if [ -n "$2" ]; then mount --bind "$2" "$own/code"; fi
if [ -n "$3" ]; then mount --bind "$3" "$own/exec"; fi
mount --rbind "$1" /home
${ownMachine}
shift 3
"$@" &
wait $!
`;

function inNamespaces(script: string, ...args: string[]): string[] {
  return ['unshare', ...apart, '--', '/bin/sh', '-ec', script, 'sh', ...args];
}

/** The command of a login node's process, with the homes that its sandbox shows. */
export function loginNodeProgram(sandbox: Sandbox, homes: string): { file: string; args: string[] } {
  const own = { file: process.execPath, args: loginNodeArguments(codeRoot) };
  if (sandbox === 'self') return own;
  if (sandbox === 'root') return { file: 'prlimit', args: [...limits, '--', own.file, ...own.args] };
  const [code = '', exec = ''] = [codeRoot, dirname(process.execPath)].map((dir) =>
    hidden.some((one) => `${dir}/`.startsWith(`${one}/`)) ? dir : '',
  );
  const file = exec ? join('/home', ownDirectory, 'exec', basename(own.file)) : own.file;
  const args = loginNodeArguments(code ? join('/home', ownDirectory, 'code') : codeRoot);
  return {
    file: 'prlimit',
    args: [...limits, '--', ...inNamespaces(loginNode, homes, code, exec, file, ...args)],
  };
}

let obstacle: Promise<string | undefined> | undefined;

/** The reason, in one line, why login nodes cannot have namespaces here; undefined when they can. */
export function findObstacle(): Promise<string | undefined> {
  obstacle ??= new Promise((resolve) => {
    const args = [...limits, '--', ...inNamespaces(`${ownMachine}setpriv --no-new-privs /bin/sh -c :`)];
    execFile('prlimit', args, { timeout: 30_000, env: { PATH: systemPath } }, (error, _out, said) =>
      resolve(error ? said.trim().replaceAll('\n', '; ') || error.message : undefined),
    );
  });
  return obstacle;
}

/** The same program with the account's rights, which it cannot change. */
export function asAccount(
  sandbox: Sandbox,
  account: { uid: number; gid: number },
  program: Program,
): Program {
  const { file, args, env } = program;
  // The systemd unit has set no_new_privs already, and its filter forbids the system call that setpriv makes in any case.
  if (sandbox === 'self' && gainsNoPrivileges()) return program;
  const rights = ['--no-new-privs'];
  if (sandbox !== 'self') {
    requireOrdinary(account);
    rights.push('--bounding-set=-all', '--inh-caps=-all', '--clear-groups');
    rights.push(`--reuid=${account.uid}`, `--regid=${account.gid}`);
  }
  return { file: 'setpriv', args: [...rights, '--', file, ...args], env };
}

function gainsNoPrivileges(): boolean {
  return /^NoNewPrivs:\s*1$/m.test(readFileSync('/proc/self/status', 'utf8'));
}

/** Sessions never run as root, or as a uid or gid that is no valid number. */
export function requireOrdinary(account: { uid: number; gid: number }): void {
  for (const id of [account.uid, account.gid]) {
    if (!Number.isInteger(id) || id < 1 || id > 0xfffffffe)
      throw new Error(`No session runs as uid or gid ${id}.`);
  }
}
