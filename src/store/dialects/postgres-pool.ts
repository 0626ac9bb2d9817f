/** A few connections that are used by one after the other, made when they are needed, and closed when they are not for a while. */
import { PostgresError } from './postgres-fault.ts';
import type { Session } from './postgres-session.ts';

export interface Pool {
  /** Waits for a connection, and throws where there is none for too long. Give it back. */
  take(): Promise<Session>;
  /** Where it has ended, another one is made in its place. */
  give(session: Session): void;
  /** Closes those that nobody uses; returns how many those were. */
  closeIdle(): number;
  /** Ends those of which nothing was heard for so long, and fails what waits for an answer of theirs. */
  endIfSilent(ms: number): void;
  close(): Promise<void>;
}

export interface PoolOptions {
  size: number;
  connect(): Promise<Session>;
  /** How long a connection is kept that nobody uses. */
  idleMs?: number;
}

/** Whoever waits longer for a connection does not wait for a slow query, but for a database that is away. */
const waitMs = 10_000;
const usualIdleMs = 60_000;

interface Waiting {
  resolve(session: Session): void;
  reject(error: unknown): void;
  timer: NodeJS.Timeout;
}

export function createPool({ size, connect, idleMs = usualIdleMs }: PoolOptions): Pool {
  const all = new Set<Session>();
  const idle = createIdle((session) => void all.delete(session));
  const waiting: Waiting[] = [];
  let connecting = 0;
  let isClosed = false;
  const sweeps = setInterval(() => idle.close(idleMs), idleMs / 4).unref();

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
    else idle.add(session);
  }

  return {
    async take() {
      const session = idle.take();
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
    closeIdle: () => idle.close(0),
    endIfSilent(ms) {
      for (const session of all) session.endIfSilent(ms);
    },
    async close() {
      isClosed = true;
      clearInterval(sweeps);
      for (const one of waiting.splice(0))
        settle(one).reject(new PostgresError('the database was closed', { isLost: true }));
      await Promise.all([...all].map((session) => session.close()));
    },
  };
}

/** The connections that nobody uses. `onGone`: it is no connection of the pool any more. */
function createIdle(onGone: (session: Session) => void) {
  /** Those that were used last are behind. */
  const idle: { session: Session; since: number }[] = [];
  return {
    add: (session: Session) => void idle.push({ session, since: performance.now() }),
    take(): Session | undefined {
      for (let next = idle.pop(); next; next = idle.pop()) {
        if (next.session.isOpen) return next.session;
        onGone(next.session);
      }
      return undefined;
    },
    /** Closes those that were not used for so long; returns how many. */
    close(ms: number): number {
      const until = performance.now() - ms;
      const kept = idle.findIndex(({ since }) => since > until);
      const closed = idle.splice(0, kept < 0 ? idle.length : kept);
      for (const { session } of closed) {
        onGone(session);
        void session.close();
      }
      return closed.length;
    },
  };
}
