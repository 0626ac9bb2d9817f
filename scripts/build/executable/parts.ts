/** Where all code of the executable finds what lies beside it: on globalThis, for each part is a bundle of its own. */
import type { Worker } from 'node:worker_threads';

export const partsKey = 'andromedaParts';

export interface Parts {
  /** The exports of a part of the program (code.ts). The build puts a call where code imports it. */
  code(name: string): unknown;
  /** A native addon (addons.ts). The build puts a call where code requires it. */
  addon(file: string): unknown;
  /** The text of a file below src/. */
  text(path: string): string;
  /** A file that people load: of the web console below console/, the portable client below client/. */
  bytes(path: string): Buffer;
  /** Starts a thread that runs a part of the program. */
  startWorker(part: string, workerData: object): Worker;
}

export function giveParts(parts: Parts): void {
  Object.assign(globalThis, { [partsKey]: parts });
}

export function parts(): Parts {
  return (globalThis as unknown as { [partsKey]: Parts })[partsKey];
}
