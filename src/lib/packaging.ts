/**
 * The parts of the program that depend on its layout on disk: here as a checkout. In the executable that `npm run
 * build` makes, scripts/build/executable/packaging.ts replaces this file. No other file may depend on its own path.
 */
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { isAbsolute, join } from 'node:path';
import { Worker } from 'node:worker_threads';

/** The folder that must be accessible for another process of the program to start. */
export const codeRoot: string = join(import.meta.dirname, '../..');

/** The program as a file to run; `isOneFile`: that file is all of it. */
export const programFile: string = join(codeRoot, 'scripts/andromeda');
export const isOneFile: boolean = false;

/** The commit that the program was built from, and its date (RFC 3339); undefined in a checkout. */
export const build: { commit: string; date: string } | undefined = undefined;

/** The licences of everything in the program, whole. A checkout has them in node_modules. */
export const notices = (): string => readFileSync(join(codeRoot, 'LICENSE'), 'utf8');

/** The command by which a person here runs the program. */
export const commandName: string = 'npx andromeda';

/** A text file of the program, by its path below src/. */
export function programText(path: string): string {
  return readFileSync(join(codeRoot, 'src', path), 'utf8');
}

export interface ConsoleFile {
  type: string;
  tag: string;
  plain: Buffer;
  br?: Buffer;
  gzip?: Buffer;
}

/** The console's files by their path, rebuilt if they have changed. */
export async function consoleFiles(): Promise<ReadonlyMap<string, ConsoleFile>> {
  // The computed name keeps the build scripts out of the program's imports.
  const { buildConsole } = await import(join(codeRoot, 'scripts/build/console.ts'));
  return buildConsole(codeRoot);
}

export interface PortableClient {
  mjs: Buffer;
  tgz: Buffer;
}

export async function portableClient(): Promise<PortableClient> {
  const { buildPortable } = await import(join(codeRoot, 'scripts/build/client.ts'));
  return buildPortable(codeRoot);
}

/** Node's arguments that start a login node's process, with the code in `codeDir`. */
export function loginNodeArguments(codeDir: string): string[] {
  return [join(codeDir, 'src/sync/simulated/login-node/main.ts')];
}

/**
 * Node's arguments that start a gateway process, with the code in `codeDir`. Its bytes pass through reused memory, so
 * few objects are young: a semi-space above 4 MiB makes nothing faster, and is most of what an idle session costs.
 */
export function gatewayArguments(codeDir: string = codeRoot): string[] {
  const flags = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=4'];
  // A path through a descriptor must not be resolved: the directories above may be closed to the process.
  if (codeDir !== codeRoot) flags.push('--preserve-symlinks', '--preserve-symlinks-main');
  return [...flags, join(codeDir, 'src/main.ts'), 'gateway'];
}

export function backupArguments(): string[] {
  return ['--disable-warning=ExperimentalWarning', join(codeRoot, 'src/main.ts'), 'backup-process'];
}

/** Starts a file of the program, by its path below src/ without `.ts`, in a worker thread. */
export function startWorker(path: string, workerData: object): Worker {
  return new Worker(join(codeRoot, 'src', `${path}.ts`), { workerData });
}

/** Node's arguments for a process that only exits with this status. */
export function exitArguments(status: number): string[] {
  return ['-e', `process.exitCode = ${status}`];
}

/** The environment that another process of the program needs besides PATH: Node's compile cache directory, if set. */
export function inheritedEnvironment(): Record<string, string> {
  const { NODE_COMPILE_CACHE: compiled } = process.env;
  return compiled === undefined ? {} : { NODE_COMPILE_CACHE: compiled };
}

/** Enables Node's compile cache, where it can be stored, so that code is not compiled at every start. */
export function keepCompiled(): void {
  const { XDG_CACHE_HOME: cache, HOME: home } = process.env;
  const base = [cache, home && join(home, '.cache')].find((path) => path && isAbsolute(path));
  if (base) enableCompileCache(join(base, 'andromeda', 'compiled'));
}
