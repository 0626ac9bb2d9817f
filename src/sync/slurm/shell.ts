/**
 * Runs a script on a host as root: over SSH with the system's own client and a pinned host key, or on this machine. The
 * script goes in on standard input, so that its text is in no argument list, and one connection is one round trip. The first
 * host key of a host without a pinned one is kept on this machine or, if several servers share a database, in the database.
 */
import { spawn } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from './hosts.ts';

/** `isUnreachable`: the host does not answer, which may pass by itself. A person must mend every other fault. */
export class HostError extends Error {
  readonly isUnreachable: boolean;
  /** How many scripts in a row, this one included, had no result on the host. */
  inARow = 1;
  constructor(message: string, isUnreachable: boolean) {
    super(message);
    this.isUnreachable = isUnreachable;
  }
}

export interface Shell {
  /** Returns what the script wrote to stdout. Throws a `HostError` that names the host. */
  run(host: Host, script: string, signal: AbortSignal, limits: Limits): Promise<string>;
  /** Number of scripts started so far, which is the number of round trips. */
  readonly runs: number;
}

interface Limits {
  /** Timeout of the connection, in seconds. */
  connectSeconds: number;
  /** Timeout of the whole run, in milliseconds. */
  ms: number;
}

export interface ShellOptions {
  user: string;
  identityFile: string | undefined;
  /** Directory of the host keys: pinned ones, and the first key of each host without a pinned one. */
  directory: string;
  /** Host keys in the database, where several servers may share it. */
  knownHosts?: SharedKnownHosts | undefined;
}

const maxOutputBytes = 16 * 1024 * 1024;

export function createShell(options: ShellOptions): Shell {
  let runs = 0;
  const known = createKnownHosts(options.directory, options.knownHosts);
  return {
    get runs() {
      return runs;
    },
    async run(host, script, signal, { connectSeconds, ms }) {
      runs += 1;
      const limit = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
      const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
      if (!host.reach) return execute(host, [...sudo, 'sh', '-s'], script, limit);
      await mkdir(options.directory, { recursive: true, mode: 0o700 });
      const alias = host.address.replace(/[^A-Za-z0-9._-]/g, '_');
      const prepared = await known.prepare(alias, host.reach.hostKey);
      const command = remoteCommand(host.reach, options, { alias, ...prepared, connectSeconds });
      try {
        return await execute(host, command, script, limit);
      } finally {
        await known.keep(alias, prepared);
      }
    },
  };
}

function remoteCommand(
  { host: name, port }: NonNullable<Host['reach']>,
  { user, identityFile }: ShellOptions,
  {
    alias,
    file,
    takesNew,
    connectSeconds,
  }: { alias: string; file: string; takesNew: boolean; connectSeconds: number },
): string[] {
  const settings = {
    BatchMode: 'yes',
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    IdentityFile: quoted(identityFile ?? ''),
    PreferredAuthentications: 'publickey',
    StrictHostKeyChecking: takesNew ? 'accept-new' : 'yes',
    UserKnownHostsFile: quoted(file),
    GlobalKnownHostsFile: '/dev/null',
    HostKeyAlias: alias,
    CheckHostIP: 'no',
    UpdateHostKeys: 'no',
    ConnectTimeout: connectSeconds,
    ServerAliveInterval: 5,
    ServerAliveCountMax: 3,
    ControlPath: 'none',
    ClearAllForwardings: 'yes',
    LogLevel: 'ERROR',
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  const remote = user === 'root' ? 'sh -s' : 'sudo -n sh -s';
  return ['ssh', '-F', 'none', '-a', '-x', '-T', ...flags, '-p', `${port}`, '-l', user, '--', name, remote];
}

function quoted(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`;
}

function execute(
  host: Host,
  [program = '', ...args]: string[],
  script: string,
  signal: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      signal,
      killSignal: 'SIGKILL',
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: process.env['HOME'] ?? '/', LC_ALL: 'C' },
    });
    const out: Buffer[] = [];
    let size = 0;
    let err = '';
    child.stdout.on('data', (part: Buffer) => {
      size += part.length;
      if (size > maxOutputBytes) child.kill('SIGKILL');
      else out.push(part);
    });
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      err = (err + part).slice(-4_000);
    });
    child.stdin.on('error', () => {});
    child.stdin.end(script);
    child.once('error', (error: NodeJS.ErrnoException) => {
      // Child processes of the killed program may hold these pipes open for any time.
      child.stdout.destroy();
      child.stderr.destroy();
      if (signal.aborted) reject(aborted(host, signal));
      else reject(new HostError(`${program} cannot be run here: ${error.message}.`, false));
    });
    child.once('close', (status) => {
      if (signal.aborted) reject(aborted(host, signal));
      else if (status === 0) resolve(Buffer.concat(out).toString('utf8'));
      else reject(faultOf(host, status, err.trim()));
    });
  });
}

function aborted(host: Host, signal: AbortSignal): Error {
  const { name } = signal.reason as Error;
  return name === 'TimeoutError'
    ? new HostError(`${host.address} does not answer in time.`, true)
    : signal.reason;
}

/** The failure as a message for a person. Status 255 is a failure of ssh itself, every other status the script's. */
function faultOf({ address, reach }: Host, status: number | null, text: string): HostError {
  const last = text.split('\n').at(-1) ?? '';
  if (/Host key verification failed|HOST IDENTIFICATION HAS CHANGED/.test(text)) {
    return new HostError(
      `${address} shows a host key that is not the expected one; compare it, and correct hostKey.`,
      false,
    );
  }
  if (/^sudo:|sudo: not found|sudo: command not found/m.test(text)) {
    return new HostError(
      `sudo refuses on ${address}: ${last.replace(/^sudo: /, '')}. The management user needs NOPASSWD.`,
      false,
    );
  }
  if (reach && status === 255 && /Load key|identity file|no such identity/i.test(text)) {
    return new HostError(`The management key cannot be read: ${last}`, false);
  }
  if (reach && status === 255 && /Permission denied/.test(text)) {
    return new HostError(`${address} does not take the management key; see manage in the lab file.`, false);
  }
  if (reach && status === 255)
    return new HostError(`${address} cannot be reached: ${last || 'no answer'}`, true);
  return new HostError(`The script on ${address} ended with ${status ?? 'a signal'}: ${last}`, false);
}

export interface SharedKnownHosts {
  /** All host keys, as lines of a known_hosts file. */
  read(): Promise<string>;
  /** Adds the lines of a host; does nothing when the host has some already. */
  add(alias: string, lines: string): Promise<void>;
}

interface KnownHosts {
  /** Returns the known_hosts file for ssh, and whether ssh accepts a key that is not in the file. */
  prepare(alias: string, hostKey: string | undefined): Promise<{ file: string; takesNew: boolean }>;
  /** Shares the key that ssh added to the file, if it accepted a new one. */
  keep(alias: string, prepared: { file: string; takesNew: boolean }): Promise<void>;
}

/** `directory`: an existing directory for ssh's files. */
export function createKnownHosts(directory: string, shared: SharedKnownHosts | undefined): KnownHosts {
  const known = new Map<string, string>();

  async function find(from: SharedKnownHosts, alias: string): Promise<string | undefined> {
    if (!known.has(alias)) for (const [name, lines] of byHost(await from.read())) known.set(name, lines);
    return known.get(alias);
  }

  return {
    async prepare(alias, hostKey) {
      if (hostKey !== undefined) {
        const file = join(directory, `${alias}.pin`);
        await writeFile(file, `${alias} ${hostKey}\n`, { mode: 0o600 });
        return { file, takesNew: false };
      }
      if (!shared) return { file: join(directory, 'known_hosts.met'), takesNew: true };
      const lines = await find(shared, alias);
      const file = join(directory, `${alias}.met`);
      if (lines === undefined) await rm(file, { force: true });
      else await writeFile(file, lines, { mode: 0o600 });
      return { file, takesNew: lines === undefined };
    },
    async keep(alias, { file, takesNew }) {
      if (!shared || !takesNew) return;
      const lines = byHost(await readFile(file, 'utf8').catch(() => '')).get(alias);
      if (lines !== undefined) await shared.add(alias, lines);
    },
  };
}

/** Groups the lines of a known_hosts file by host alias, their first field. */
function byHost(text: string): Map<string, string> {
  const hosts = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [alias = ''] = line.split(' ', 1);
    if (alias !== '') hosts.set(alias, `${hosts.get(alias) ?? ''}${line}\n`);
  }
  return hosts;
}
