/**
 * A disk that can lose power: ext4 in a file, by a loop device. The cut is ext4's own (`EXT4_IOC_SHUTDOWN` without a
 * flush of its journal, which is how the kernel's file system tests do it): from one instant to the next nothing more
 * reaches the block device, every later flush fails, and what was only in the page cache is gone when it is mounted again.
 * A copy of the image while writes go on would not be of one instant.
 *
 * What is answered from that instant on does not count. A machine without power answers nothing; here an fdatasync that
 * was under way may still say that all went well, for the kernel takes a transaction that it gave up for one that is over
 * (`jbd2_complete_transaction`).
 *
 * What it does not show: a drive that loses or reorders what is in its own cache. Against that, ext4 sends the drive
 * a flush in every fdatasync (`barrier`, the default).
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Disk extends Disposable {
  /** Where it is mounted. */
  readonly directory: string;
  /** Puts everything on it that was written so far. */
  settle(): void;
  /** Writes a file's pages at random moments until the signal, as a system short of memory would. */
  writeEarly(file: string, signal: AbortSignal): Promise<void>;
  /** `before` is called right before. */
  cutPower(before: () => void): Promise<void>;
  /** Mounts what reached the disk, once what used it has ended. */
  restorePower(): Promise<void>;
}

const patienceMs = 10_000;
const bytes = 256 * 1024 * 1024;
/** _IOR('X', 125, __u32), and EXT4_GOING_FLAGS_NOLOGFLUSH. */
const shutdown =
  'my $f = pack("L", 2); sysopen(D, $ARGV[0], 0) or die; $| = 1; print "ready"; <STDIN>; ioctl(D, 0x8004587d, $f) or die';

/** Why there can be no such disk here, as a clause; undefined where there can. */
export function whyNoDisk(): string | undefined {
  if (process.platform !== 'linux') return 'only Linux has ext4';
  if (process.getuid?.() !== 0) return 'only root mounts file systems';
  if (!existsSync('/dev/loop-control')) return 'there are no loop devices';
  for (const program of ['mkfs.ext4', 'mount', 'unshare', 'perl']) {
    if (!isThere(program)) return `${program} is not installed`;
  }
  return spawnSync('unshare', ['--mount', 'true']).status === 0 ? undefined : 'this container may not mount';
}

function isThere(program: string): boolean {
  const path = `${process.env['PATH']}:/usr/sbin:/sbin`;
  return path.split(':').some((directory) => existsSync(join(directory, program)));
}

/** Makes one in a directory, in a mount namespace that nobody copies; it lasts until it is disposed of or this process ends. Throws where that cannot be. */
export function createDisk(dir: string): Disk {
  const image = join(dir, 'disk.img');
  const directory = join(dir, 'disk');
  writeFileSync(image, '');
  truncateSync(image, bytes);
  mkdirSync(directory);
  run('mkfs.ext4', '-q', '-F', image);
  mount();

  function mount(): void {
    run('mount', '-o', 'loop', image, directory);
  }

  function tryUnmount(): boolean {
    return spawnSync('umount', [directory], { env }).status === 0;
  }

  return {
    directory,
    settle: () => run('sync', '-f', directory),
    async writeEarly(file, signal) {
      while (!signal.aborted) {
        await sleep(Math.random() * 100);
        // It opens the file in a process of its own: closing it here would drop SQLite's locks.
        await once(spawn('sync', ['--data', file], { stdio: 'ignore' }), 'close');
      }
    },
    async cutPower(before) {
      const cut = spawn('perl', ['-e', shutdown, directory], { stdio: ['pipe', 'pipe', 'inherit'] });
      await once(cut.stdout, 'data');
      before();
      cut.stdin.end('\n');
      const [status] = await once(cut, 'close');
      if (status !== 0) throw new Error('the disk does not lose power: ext4 refused it');
    },
    async restorePower() {
      // A process that ends closes its files first, and lets go of its memory, in which some are mapped, later.
      const patience = performance.now() + patienceMs;
      while (!tryUnmount()) {
        if (performance.now() > patience) throw new Error(`${directory} is in use`);
        await sleep(20);
      }
      mount();
    },
    [Symbol.dispose]() {
      // Lazily: whoever still has a file open has it on a disk without power.
      run('umount', '--lazy', directory);
    },
  };
}

const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin:/sbin` };

function run(program: string, ...args: string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
}
