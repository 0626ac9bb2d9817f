/** What a job left behind: processes, mounts and files. Its TMPDIR marks what is its own, whoever else uses the machine. */
import { execFileSync } from 'node:child_process';
import { chmodSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const tmpfs = 0x01021994;
const neededBytes = 4 * 2 ** 30;
/** How long what ends on its own after the job may take to do so. */
const graceMs = 3_000;

/** A directory for the jobs' own: in memory where there is enough of it, for tests flush to the disk many times. */
export function makeWorkDirectory(): string {
  const directory = mkdtempSync(join(isRoomy('/dev/shm') ? '/dev/shm' : tmpdir(), 'andromeda-'));
  chmodSync(directory, 0o755);
  return directory;
}

function isRoomy(path: string): boolean {
  try {
    const { type, bavail, bsize } = statfsSync(path);
    const mount = readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === path);
    return type === tmpfs && bavail * bsize >= neededBytes && mount?.includes('noexec') === false;
  } catch {
    return false;
  }
}

export function removeWorkDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
}

/** What is left in a job's directory or runs for it, each in words; ends it and removes the directory. */
export async function leftIn(directory: string): Promise<string[]> {
  const deadline = Date.now() + graceMs;
  while (processesOf(directory).length > 0 && Date.now() < deadline) await wait(50);
  const processes = killAll(directory);
  const mounts = unmountAll(directory);
  const files = readdirSync(directory);
  removeWorkDirectory(directory);
  return [...processes, ...mounts, ...files.map((name) => `the file ${name} in TMPDIR`)];
}

/** Kills every process with this TMPDIR, or with a name in it in its command; returns what they were. */
export function killAll(directory: string): string[] {
  return processesOf(directory).map(({ pid, command }) => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended by itself meanwhile.
    }
    return `the process ${pid} (${command.slice(0, 120)})`;
  });
}

function processesOf(directory: string): { pid: number; command: string }[] {
  const isOurs = (text: string) => text.includes(`${directory}/`) || text.includes(`TMPDIR=${directory}\0`);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const command = read(`/proc/${pid}/cmdline`);
      // An empty command is a process that ended and was not waited for yet, or the kernel's.
      const isLeft = command !== '' && (isOurs(command) || isOurs(read(`/proc/${pid}/environ`)));
      return isLeft ? [{ pid: Number(pid), command: command.replaceAll('\0', ' ').trim() }] : [];
    });
}

function unmountAll(directory: string): string[] {
  const points = read('/proc/self/mounts')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((point) => point.startsWith(`${directory}/`))
    .reverse();
  for (const point of points) execFileSync('umount', ['--lazy', point]);
  return points.map((point) => `the mount ${point}`);
}

/** Empty where it cannot be read. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Home directories, accounts, and what lies in this one's home and in the machine's temporary directory by our name. */
export function homesNow(): string[] {
  const accounts = read('/etc/passwd').split('\n').filter(Boolean);
  return [
    ...globSync(['/home/*', join(homedir(), '{.*,*,.config/*,.local/*/*}'), '/tmp/andromeda*']),
    ...accounts,
  ];
}
