/** The service's socket: connections of gateway processes, each of which says hello before anything else. */
import { chownSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { type Lines, openLines } from './lines.ts';
import type { Member } from './member.ts';
import { type FromProcess, type Hello, type Malformed, readFromProcess, type ToProcess } from './messages.ts';
import type { Account } from './privileges.ts';
import { listen, type RunDirectory } from './run-directory.ts';

/** Limit on connections of gateway processes: one may have few sessions and live for days after an upgrade. */
const mostConnections = 1_000;
/** A connection says hello within this, or is closed. Processes connect several times a second. */
const helloMs = 2_000;

export interface ConnectionsOptions {
  directory: RunDirectory;
  /** The account that the processes run as, where it differs from the service's. */
  account: Account | undefined;
  onHello(lines: Lines<ToProcess>, hello: Hello): Member;
  onMessage(member: Member, message: FromProcess): void;
  /** A process has lost its connection, and may have ended. */
  onDisconnected(): void;
  onFault(error: unknown, pid: number | undefined): void;
}

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    const { directory, account } = this.#options;
    this.#server = await listen(directory, (socket) => this.#onConnection(socket));
    if (account) chownSync(directory.socket, account.uid, account.gid);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server?.close(() => resolve()));
  }

  #onConnection(socket: Socket): void {
    if (this.#sockets.size >= mostConnections) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    const { onHello, onMessage, onDisconnected, onFault } = this.#options;
    let member: Member | undefined;
    const fault = (error: unknown) => onFault(error, member?.pid);
    const malformed = ({ of, id }: Malformed) => {
      const error = new Error(`a message of type ${of} that is not of its form`);
      fault(error);
      if (!member) return lines.close();
      if (of === 'authorize' && id !== undefined)
        member.send({ type: 'undecided', id, message: error.message });
    };
    const late = setTimeout(() => socket.destroy(), helloMs).unref();
    const lines: Lines<ToProcess> = openLines<FromProcess | Malformed, ToProcess>(socket, {
      read: readFromProcess,
      onMessage: (message) => {
        if (message.type === 'malformed') return malformed(message);
        if (member) return onMessage(member, message);
        if (message.type !== 'hello') return lines.close();
        clearTimeout(late);
        member = onHello(lines, message);
      },
      onClose: (why) => {
        clearTimeout(late);
        this.#sockets.delete(socket);
        if (why !== undefined) {
          fault(new Error(why));
          // The process would send the same on its next connection, and block all its sessions.
          member?.kill();
        }
        if (member?.disconnected(lines)) onDisconnected();
      },
      onFault: fault,
    });
  }
}
