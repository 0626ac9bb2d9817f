/** Ends the process although native code has not returned: Node would wait for its threads. */
import { exitArguments } from '../lib/packaging.ts';

let hasThreadLeft = false;

/** Notes that a thread of this process may never end. */
export function leaveThreadBehind(): void {
  hasThreadLeft = true;
}

/** Ends the process with this status where a thread was left behind; returns where none was. */
export function endDespiteThreads(status: number): void {
  // Replacing the program (execve) is the only way to end its threads and keep the exit status.
  if (hasThreadLeft) process.execve?.(process.execPath, [process.argv0, ...exitArguments(status)], {});
}
