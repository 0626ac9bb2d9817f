/**
 * Runs a script on a host as root: over SSH with the system's own client and a pinned host key, or on this machine. The
 * script goes in on standard input, so that its text is in no argument list, and one connection is one round trip. The first
 * host key of a host without a pinned one is kept on this machine or, if several servers share a database, in the database.
 * A host behind a hop is reached through the connection that all hosts behind it share (hops.ts).
 */
import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { addressOf, type Hop } from '../../domain/slurm/hop.ts';
import { type HopConnection, Hops, holdCommand } from './hops.ts';
import type { Host } from './hosts.ts';
import { createKnownHosts, type PreparedKeys, type SharedKnownHosts } from './known-hosts.ts';

/** `isUnreachable`: the host does not answer, which may pass by itself. A person must mend every other fault. */
export class HostError extends Error {
  readonly isUnreachable: boolean;
  /** How many scripts in a row, this one included, had no result on the host. */
  inARow = 1;
  /** The fault of the hop, for which this host could not be asked. */
  readonly hop: HopFault | undefined;
  constructor(message: string, isUnreachable: boolean, hop?: HopFault) {
    super(message);
    this.isUnreachable = isUnreachable;
    this.hop = hop;
  }
}

export interface HopFault {
  address: string;
  message: string;
}

/** A sentence about all hosts that could not be asked because of the same fault of their hop. */
export function unaskedText(hosts: readonly string[], { address, message }: HopFault): string {
  const [first = '', ...more] = hosts;
  const [who, are] = more.length === 0 ? [first, 'it is'] : [`${first} and ${more.length} more`, 'they are'];
  const cause = message.replace(address, `${address}, through which ${are} reached,`);
  return `${who} cannot be asked: ${cause}`;
}

export interface Shell {
  /** Returns what the script wrote to stdout. Throws a `HostError` that names the host. */
  run(host: Host, script: string, signal: AbortSignal, limits: Limits): Promise<string>;
  /** Number of scripts started so far, which is the number of round trips. */
  readonly runs: number;
  /** Closes the connections to hops. */
  close(): Promise<void>;
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

type Reach = NonNullable<Host['reach']>;

const hopSeconds = 8;
/** A hop that hangs is noticed within six seconds, before the connections of the hosts behind it time out singly. */
const hopAlive = { ServerAliveInterval: 2, ServerAliveCountMax: 2 };
/** Time in which a hop that went away is noticed, after the connection of a host behind it failed. */
const noticeMs = 300;

export function createShell(options: ShellOptions): Shell {
  let runs = 0;
  const ssh = new Ssh(options);
  return {
    get runs() {
      return runs;
    },
    async run(host, script, signal, { connectSeconds, ms }) {
      runs += 1;
      const limit = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
      if (host.reach) return ssh.run({ ...host, reach: host.reach }, script, limit, connectSeconds);
      const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
      return execute(host, [...sudo, 'sh', '-s'], script, limit, { env: environment() });
    },
    close: () => ssh.close(),
  };
}

class Ssh {
  readonly #options: ShellOptions;
  readonly #directory: string;
  readonly #known: ReturnType<typeof createKnownHosts>;
  readonly #hops: Hops;

  constructor(options: ShellOptions) {
    this.#options = options;
    this.#directory = resolve(options.directory);
    this.#known = createKnownHosts(this.#directory, options.knownHosts);
    const start = (hop: Hop, socket: string) => this.#startHop(hop, socket);
    this.#hops = new Hops({ directory: this.#directory, start, faultOf: faultOfHop });
  }

  async run(host: Host & { reach: Reach }, script: string, signal: AbortSignal, connectSeconds: number) {
    const { address, reach } = host;
    const { via } = reach;
    const hop = via && (await unlessAborted(this.#openHop(address, via), host, signal));
    const remote = this.#options.user === 'root' ? 'sh -s' : 'sudo -n sh -s';
    const settings = { ConnectTimeout: connectSeconds, ...through(hop) };
    const { command, spawning, keep } = await this.#prepare(reach, remote, settings);
    try {
      return await execute(host, command, script, signal, spawning);
    } catch (error) {
      const mayBeHop = hop && error instanceof HostError && error.isUnreachable && !signal.aborted;
      throw mayBeHop ? await faultBehind(error, { address, via, hop }) : error;
    } finally {
      await keep();
    }
  }

  close(): Promise<void> {
    return this.#hops.close();
  }

  /** The ssh command for a host, with its known host keys; `keep` is called after it ran. */
  async #prepare(reach: Reach, remote: string, settings: Settings, prefix = '') {
    const directory = this.#directory;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const alias = `${prefix}${addressOf(reach)}`.replace(/[^A-Za-z0-9._-]/g, '_');
    const prepared = await this.#known.prepare(alias, reach.hostKey);
    const all = { ...hostKeySettings(alias, prepared), ...settings };
    const command = remoteCommand(reach, this.#options, remote, all);
    // The socket of a hop is named relative to the directory.
    const spawning = { cwd: directory, env: environment({ HOP_TO: `[${reach.host}]:${reach.port}` }) };
    return { command, spawning, keep: () => this.#known.keep(alias, prepared) };
  }

  #openHop(address: string, via: Hop): Promise<HopConnection> {
    return this.#hops.open(via).catch((fault) => {
      throw behind(address, via, fault);
    });
  }

  async #startHop(hop: Hop, socket: string) {
    const before = hop.via && (await this.#openHop(addressOf(hop), hop.via));
    const own = { ControlMaster: 'yes', ControlPath: socket, LogLevel: 'INFO', ...hopAlive };
    const settings = { ConnectTimeout: hopSeconds, ...through(before), ...own };
    // A name of its own: as a host of the cluster it may be written to known_hosts at the same time.
    const { command, spawning } = await this.#prepare(hop, holdCommand, settings, 'hop_');
    const [program = '', ...args] = command;
    return spawn(program, args, { ...spawning, stdio: ['pipe', 'pipe', 'pipe'] });
  }
}

function environment(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { PATH = '/usr/bin:/bin', HOME = '/' } = process.env;
  return { PATH, HOME, LC_ALL: 'C', ...more };
}

/** Waits for a connection that other hosts may share, and that is not aborted with this one's script. */
function unlessAborted<T>(promise: Promise<T>, host: Host, signal: AbortSignal): Promise<T> {
  const abort = new Promise<never>((_, reject) => {
    const onAbort = () => reject(aborted(host, signal));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  return Promise.race([promise, abort]);
}

/** The fault of a host that could not be reached through its hop, which may be the hop's. */
async function faultBehind(
  error: HostError,
  { address, via, hop }: { address: string; via: Hop; hop: HopConnection },
): Promise<HostError> {
  const fault = await Promise.race([hop.ended, wait(noticeMs)]);
  if (fault) return behind(address, via, fault);
  if (!/Connection closed|timed out/.test(error.message)) return error;
  const at = addressOf(via);
  if (hop.forbids()) return behind(address, via, new HostError(`${at} ${forbidden}`, false));
  return new HostError(`${address} cannot be reached: ${at} gets no connection to it.`, true);
}

const forbidden =
  'forbids forwarding: see AllowTcpForwarding and PermitOpen there, and restrict in authorized_keys, which needs port-forwarding.';

/** The fault of a host whose hop has a fault. */
function behind(address: string, via: Hop, fault: Error): HostError {
  const hop = { address: addressOf(via), message: fault.message };
  const isUnreachable = !(fault instanceof HostError) || fault.isUnreachable;
  return new HostError(unaskedText([address], hop), isUnreachable, hop);
}

type Settings = Record<string, string | number>;

interface Spawning {
  cwd?: string;
  env: NodeJS.ProcessEnv;
}

/** Without the socket this must fail: the host's name means something else in the service's network. */
function through(hop: HopConnection | undefined): Settings {
  if (!hop) return {};
  const command = `ssh -F none -o ControlPath=${hop.socket} -o ProxyCommand=false -W "$HOP_TO" hop`;
  return { ProxyCommand: command };
}

function hostKeySettings(alias: string, { file, takesNew }: PreparedKeys): Settings {
  return {
    StrictHostKeyChecking: takesNew ? 'accept-new' : 'yes',
    UserKnownHostsFile: quoted(file),
    HostKeyAlias: alias,
  };
}

function remoteCommand(
  { host, port }: Reach,
  { user, identityFile }: ShellOptions,
  remote: string,
  more: Settings,
): string[] {
  const settings = {
    BatchMode: 'yes',
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    IdentityFile: quoted(identityFile === undefined ? '' : resolve(identityFile)),
    PreferredAuthentications: 'publickey',
    GlobalKnownHostsFile: '/dev/null',
    CheckHostIP: 'no',
    UpdateHostKeys: 'no',
    ServerAliveInterval: 5,
    ServerAliveCountMax: 3,
    ControlPath: 'none',
    ClearAllForwardings: 'yes',
    LogLevel: 'ERROR',
    ...more,
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  return ['ssh', '-F', 'none', '-a', '-x', '-T', ...flags, '-p', `${port}`, '-l', user, '--', host, remote];
}

function quoted(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`;
}

function execute(
  host: Host,
  [program = '', ...args]: string[],
  script: string,
  signal: AbortSignal,
  spawning: Spawning,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const limits = { signal, killSignal: 'SIGKILL' as const };
    const child = spawn(program, args, { ...spawning, ...limits, stdio: ['pipe', 'pipe', 'pipe'] });
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
function faultOf(
  { address, reach }: Pick<Host, 'address' | 'reach'>,
  status: number | null,
  text: string,
): HostError {
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

function faultOfHop(hop: Hop, status: number | null, text: string): HostError {
  const address = addressOf(hop);
  if (status === 255) return faultOf({ address, reach: hop }, status, text);
  const why =
    status === null ? 'does not answer in time.' : `ended the connection: ${text.split('\n').at(-1)}`;
  return new HostError(`${address} ${why}`, true);
}
