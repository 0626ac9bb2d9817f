/** A few connections that are used by one after the other, made when they are needed. */
import { PostgresError } from './postgres-fault.ts';
import type { Session } from './postgres-session.ts';

export interface Pool {
  /** Waits for a connection, and throws where there is none for too long. Give it back. */
  take(): Promise<Session>;
  /** Where it has ended, another one is made in its place. */
  give(session: Session): void;
  /** Fails what has waited for an answer for so long. */
  endIfSilent(ms: number): void;
  close(): Promise<void>;
}

/** Whoever waits longer for a connection does not wait for a slow query, but for a database that is away. */
const waitMs = 10_000;

interface Waiting {
  resolve(session: Session): void;
  reject(error: unknown): void;
  timer: NodeJS.Timeout;
}

export function createPool({ size, connect }: { size: number; connect(): Promise<Session> }): Pool {
  const all = new Set<Session>();
  const idle: Session[] = [];
  const waiting: Waiting[] = [];
  let connecting = 0;
  let isClosed = false;

  function takeIdle(): Session | undefined {
    for (let session = idle.pop(); session; session = idle.pop()) {
      if (session.isOpen) return session;
      all.delete(session);
    }
    return undefined;
  }

  /** Makes another one for whoever waits first. */
  function grow(): void {
    if (isClosed || waiting.length === 0 || all.size + connecting >= size) return;
    connecting += 1;
    connect().then(
      (session) => {
        connecting -= 1;
        all.add(session);
        give(session);
      },
      (error: unknown) => {
        connecting -= 1;
        // The others are busy and not away: whoever waits gets one of them.
        if (all.size > 0) return;
        // All of them would hear the same.
        for (const one of waiting.splice(0)) settle(one).reject(error);
      },
    );
  }

  function settle(one: Waiting): Waiting {
    clearTimeout(one.timer);
    return one;
  }

  function give(session: Session): void {
    if (isClosed) return void session.close();
    if (!session.isOpen) {
      all.delete(session);
      grow();
      return;
    }
    const next = waiting.shift();
    if (next) settle(next).resolve(session);
    else idle.push(session);
  }

  return {
    async take() {
      const session = takeIdle();
      if (session) return session;
      if (isClosed) throw new PostgresError('the database was closed', { isLost: true });
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.splice(waiting.indexOf(one), 1);
          reject(new PostgresError('no connection became free', { isLost: true }));
        }, waitMs).unref();
        const one = { resolve, reject, timer };
        waiting.push(one);
        grow();
      });
    },
    give,
    endIfSilent(ms) {
      for (const session of all) session.endIfSilent(ms);
    },
    async close() {
      isClosed = true;
      for (const one of waiting.splice(0))
        settle(one).reject(new PostgresError('the database was closed', { isLost: true }));
      await Promise.all([...all].map((session) => session.close()));
    },
  };
}
