/**
 * Connections to the hosts that others are reached through. Each is one of OpenSSH's shared connections (ControlMaster), and
 * every host behind it is a TCP stream in it: the hop's sshd has one login and one session, however many hosts there are. The
 * remote command reads its standard input, so that the connection does not outlive a service that was killed.
 */
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Hop } from '../../domain/slurm/hop.ts';

/** Prints a line once it runs. */
export const holdCommand = 'echo; exec cat';
/** Timeout of the connection. It is shorter than that of any script, so that the fault names the hop. */
const upMs = 15_000;
/** Hosts of the same pass share the fault of a hop; the next pass tries again. */
const failureMs = 2_000;

export interface HopConnection {
  /** The control socket's name in `directory`: the whole path may be too long for a socket. */
  socket: string;
  /** Resolves to the fault with which the connection ended. */
  ended: Promise<Error>;
  /** True once the hop has forbidden a connection to a host behind it. */
  forbids(): boolean;
}

export interface HopOptions {
  directory: string;
  /** Starts ssh with the control socket; it may reject with the fault of a hop before this one. */
  start(hop: Hop, socket: string): Promise<ChildProcess>;
  faultOf(hop: Hop, status: number | null, text: string): Error;
}

export class Hops {
  readonly #options: HopOptions;
  readonly #connections = new Map<string, Promise<HopConnection>>();
  readonly #children = new Map<ChildProcess, Promise<unknown>>();
  #isClosed = false;

  constructor(options: HopOptions) {
    this.#options = options;
  }

  /** Returns the connection to the hop, which all hosts behind it share. Rejects with the hop's fault. */
  open(hop: Hop): Promise<HopConnection> {
    const key = JSON.stringify(hop);
    const known = this.#connections.get(key);
    if (known) return known;
    const opening = this.#connect(hop);
    this.#connections.set(key, opening);
    const forget = () => this.#connections.delete(key);
    opening.then(
      ({ ended }) => ended.then(forget),
      () => setTimeout(forget, failureMs).unref(),
    );
    return opening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const child of this.#children.keys()) child.kill('SIGKILL');
    await Promise.all(this.#children.values());
  }

  async #connect(hop: Hop): Promise<HopConnection> {
    const { directory, start, faultOf } = this.#options;
    const socket = `hop-${randomUUID().slice(0, 8)}`;
    const child = await start(hop, socket);
    if (this.#isClosed) child.kill('SIGKILL');
    const late = setTimeout(() => child.kill('SIGKILL'), upMs);
    const said = readErrors(child);
    const ended = statusOf(child).then(async (status) => {
      clearTimeout(late);
      this.#children.delete(child);
      await rm(join(directory, socket), { force: true });
      return faultOf(hop, status, said.text.trim());
    });
    this.#children.set(child, ended);
    const isUp = new Promise<undefined>((resolve) => child.stdout?.once('data', () => resolve(undefined)));
    const fault = await Promise.race([isUp, ended]);
    clearTimeout(late);
    if (fault) throw fault;
    return { socket, ended, forbids: () => said.forbids };
  }
}

function statusOf(child: ChildProcess): Promise<number | null> {
  child.stdin?.on('error', () => {});
  return new Promise((resolve) => {
    child.once('error', () => resolve(null)).once('close', resolve);
  });
}

/** Keeps the last lines of ssh about the connection itself; those about hosts behind it do not name them. */
function readErrors(child: ChildProcess) {
  const said = { text: '', forbids: false };
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    if (/open failed: administratively prohibited/.test(part)) said.forbids = true;
    const lines = part.split('\n').filter((line) => !/^channel \d+: /.test(line));
    said.text = `${said.text}${lines.join('\n')}`.slice(-4_000);
  });
  return said;
}
