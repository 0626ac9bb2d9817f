/** What outlives a service that is cut off: its gateway process. */
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Ends every process that has something below a directory open, and resolves when none has. */
export async function endLeftBehind(directory: string): Promise<void> {
  for (let users = usersOf(directory); users.length > 0; users = usersOf(directory)) {
    for (const pid of users) end(pid);
    await sleep(10);
  }
}

function usersOf(directory: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter(
      (pid) => pid > 0 && pid !== process.pid && opened(pid).some((path) => path.startsWith(`${directory}/`)),
    );
}

function opened(pid: number): string[] {
  const directory = `/proc/${pid}/fd`;
  return (orNone(() => readdirSync(directory)) ?? []).flatMap(
    (name) => orNone(() => readlinkSync(`${directory}/${name}`)) ?? [],
  );
}

/** Undefined where it has ended, or the descriptor has been closed. */
function orNone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
