/**
 * What depends on how the program lies on the disk: here as a checkout. In the executable that `npm run build` makes,
 * scripts/build/executable/packaging.ts stands in for this file. Nothing else may depend on where its own file is.
 */
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { isAbsolute, join } from 'node:path';
import { Worker } from 'node:worker_threads';

/** The folder that must be within reach for another process of the program to start. */
export const codeRoot: string = join(import.meta.dirname, '../..');

/** The program as a file to run, and whether that is all of it. */
export const programFile: string = join(codeRoot, 'scripts/andromeda');
export const isOneFile: boolean = false;

/** The commit that the program was built from, and its date (RFC 3339); undefined where nothing was built. */
export const build: { commit: string; date: string } | undefined = undefined;

/** How a person here runs the program. */
export const commandName: string = 'npx andromeda';

/** The text of a file of the program that is not code, by its path below src/. */
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

/** The console's files by their path, built now where that has not been done since they changed. */
export async function consoleFiles(): Promise<ReadonlyMap<string, ConsoleFile>> {
  // Its name is computed: nothing of the build belongs to the program.
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

/** What follows the executable's name to start a login node's process, with the code in `codeDir`. */
export function loginNodeArguments(codeDir: string): string[] {
  return [join(codeDir, 'src/sync/simulated/login-node/main.ts')];
}

/**
 * What follows the executable's name to start a gateway process, with the code in `codeDir`. Its bytes pass through reused memory, so that little is
 * young there: room for more than 4 MiB of it makes nothing faster, and is most of what an idle session costs.
 */
export function gatewayArguments(codeDir: string = codeRoot): string[] {
  const flags = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=4'];
  // A path by way of a descriptor is not resolved: the directories above may be closed to the process.
  if (codeDir !== codeRoot) flags.push('--preserve-symlinks', '--preserve-symlinks-main');
  return [...flags, join(codeDir, 'src/main.ts'), 'gateway'];
}

/** What follows the executable's name to start a process that makes a backup. */
export function backupArguments(): string[] {
  return ['--disable-warning=ExperimentalWarning', join(codeRoot, 'src/main.ts'), 'backup-process'];
}

/** Starts a file of the program, by its path below src/ without `.ts`, on a thread of its own. */
export function startWorker(path: string, workerData: object): Worker {
  return new Worker(join(codeRoot, 'src', `${path}.ts`), { workerData });
}

/** What follows the executable's name for a process that does nothing but end with this status. */
export function exitArguments(status: number): string[] {
  return ['-e', `process.exitCode = ${status}`];
}

/** What another process of the program needs of our environment in addition to PATH: Node's compile cache directory, if set. */
export function inheritedEnvironment(): Record<string, string> {
  const { NODE_COMPILE_CACHE: compiled } = process.env;
  return compiled === undefined ? {} : { NODE_COMPILE_CACHE: compiled };
}

/** Compiles whatever is loaded afterwards once, not at every start. Where that cannot be stored, it is not. */
export function keepCompiled(): void {
  const { XDG_CACHE_HOME: cache, HOME: home } = process.env;
  const base = [cache, home && join(home, '.cache')].find((path) => path && isAbsolute(path));
  if (base) enableCompileCache(join(base, 'andromeda', 'compiled'));
}
