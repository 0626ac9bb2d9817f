/** Stands in for src/lib/packaging.ts in the executable: its texts are inside, and its processes are itself again. */
import { dirname } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { parts } from './parts.ts';
import { exitRole, loginNodeRole } from './role.ts';

export const codeRoot: string = dirname(process.execPath);

export const programFile: string = process.execPath;

export const isOneFile: boolean = true;

/** Put in by bundle.ts. */
declare const buildStamp: { commit: string; date: string };
export const build: { commit: string; date: string } | undefined = buildStamp;

export const notices = (): string => programText('notices.txt');

export const commandName: string = process.argv0;

export function programText(path: string): string {
  return parts().text(path);
}

export interface ConsoleFile {
  type: string;
  tag: string;
  plain: Buffer;
  br?: Buffer;
  gzip?: Buffer;
}

export async function consoleFiles(): Promise<ReadonlyMap<string, ConsoleFile>> {
  const listed = JSON.parse(parts().text('console/files.json')) as Record<string, ConsoleFileFacts>;
  const files = Object.entries(listed).map(([path, { type, tag, isPacked }]): [string, ConsoleFile] => {
    const plain = parts().bytes(`console/${path}`);
    const packed = isPacked && {
      br: parts().bytes(`console/${path}.br`),
      gzip: parts().bytes(`console/${path}.gz`),
    };
    return [path, { type, tag, plain, ...packed }];
  });
  return new Map(files);
}

interface ConsoleFileFacts {
  type: string;
  tag: string;
  isPacked: boolean;
}

export interface PortableClient {
  mjs: Buffer;
  tgz: Buffer;
}

export async function portableClient(): Promise<PortableClient> {
  return { mjs: parts().bytes('client/andromeda.mjs'), tgz: parts().bytes('client/andromeda.tgz') };
}

export function startWorker(path: string, workerData: object): Worker {
  return parts().startWorker(path, workerData);
}

export function loginNodeArguments(): string[] {
  return [loginNodeRole];
}

export function gatewayArguments(): string[] {
  return ['gateway'];
}

export function backupArguments(): string[] {
  return ['backup-process'];
}

export function exitArguments(status: number): string[] {
  return [exitRole, String(status)];
}

/** Where addons are unpacked: another process must find the same directory (addons.ts). */
export function inheritedEnvironment(): Record<string, string> {
  const names = ['HOME', 'XDG_CACHE_HOME', 'XDG_RUNTIME_DIR', 'CACHE_DIRECTORY'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

/** The code comes with what V8 made of it (code.ts). */
export function keepCompiled(): void {}
