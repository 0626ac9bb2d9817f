/** Ends the process although native code does not return: Node waits for its threads, whatever they wait for. */
import { exitArguments } from '../lib/packaging.ts';

let isStuck = false;

/** Says that a thread of this process may never end. */
export function leaveThreadBehind(): void {
  isStuck = true;
}

/** Ends the process with this status where a thread was left behind; returns where none was. */
export function endIfStuck(status: number): void {
  // Another program in the place of this one: nothing less ends its threads and keeps the status.
  if (isStuck) process.execve?.(process.execPath, [process.argv0, ...exitArguments(status)], {});
}
