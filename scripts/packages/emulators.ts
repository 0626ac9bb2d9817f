/** Programs for other machines, run on this one: what a release cannot run, it says so of. */
import { existsSync, globSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where Debian's libc6-arm64-cross and libstdc++6-arm64-cross lie. */
export const arm64Libraries = '/usr/aarch64-linux-gnu';

/** What is typed before an executable of this platform; undefined where it cannot be run here. */
export function runnerFor(platform: string): string[] | undefined {
  if (platform === `${process.platform}-${process.arch}`) return [];
  if (platform !== 'linux-arm64' || !existsSync(join(arm64Libraries, 'lib/libstdc++.so.6'))) return undefined;
  const qemu = ['qemu-aarch64-static', 'qemu-aarch64'].map(findProgram).find((file) => file !== undefined);
  return qemu === undefined ? undefined : [qemu, '-L', arm64Libraries];
}

export function findProgram(name: string): string | undefined {
  const directories = `${process.env['PATH']}:/usr/sbin:/sbin`.split(delimiter);
  return directories.map((directory) => join(directory, name)).find((file) => globSync(file).length > 0);
}
