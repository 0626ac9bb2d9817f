/**
 * A primary and its synchronous standby, and what watches over them as Patroni would: the standby takes the place of a
 * primary that does not answer, never while that one may still write, and never where it may lack something that was
 * answered. Without a standby the primary goes on alone; one of before comes back as a standby.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type PostgresServer, signal } from './postgres.ts';

export interface Pair {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** Whether the standby has all that was answered. */
  readonly isSafe: boolean;
  /** How often the standby took the primary's place. */
  readonly failovers: number;
  /** Resolves when the standby has all that was answered, and will have all that is. */
  safe(limitMs?: number): Promise<void>;
  /** Ends the watch, then both servers. */
  stop(): Promise<void>;
  /** Ends all their processes without waiting for it. */
  killNow(): void;
}

const betweenMs = 500;
/** A primary is gone when so many questions in a row had no answer; a standby, when it was missing so often. */
const patience = { primary: 3, standby: 6 };
const database = 'andromeda';

/** Makes both, with an empty database. */
export async function startPair(
  first: PostgresServer,
  second: PostgresServer,
  say: (sentence: string) => void,
): Promise<Pair> {
  let [primary, standby] = [first, second];
  let isSafe = false;
  let failovers = 0;
  const missed = { primary: 0, standby: 0 };
  const stopped = new AbortController();

  first.create();
  await first.start();
  await setSynchronous(first, false);
  await first.query(`create database ${database} locale 'C' template template0`);
  await second.copy(first);
  await second.start();

  async function setSynchronous(server: PostgresServer, isOn: boolean): Promise<void> {
    const names = isOn ? 'ANY 1 (*)' : '';
    await server.query(`alter system set synchronous_standby_names = '${names}'`);
    await server.query('select pg_reload_conf()');
  }

  async function failOver(): Promise<void> {
    say(`${primary.name} does not answer; ${standby.name} takes its place`);
    isSafe = false;
    await primary.kill();
    await standby.query('select pg_promote(true, 30)', { limitMs: 40_000 });
    [primary, standby] = [standby, primary];
    failovers += 1;
    // It has nobody to wait for.
    await setSynchronous(primary, false);
    missed.primary = 0;
    // Going back to where both were one looks at what the last checkpoint says.
    await primary.query('checkpoint', { limitMs: 60_000 });
    await becomeStandby();
  }

  /** Of what was the primary, or of a standby that does not come back by itself. */
  async function becomeStandby(): Promise<void> {
    await standby.kill();
    await standby.rewind(primary).catch((error: Error) => {
      say(`${standby.name} becomes a new copy: ${error.message.split('\n').at(-2) ?? ''}`);
      return standby.copy(primary);
    });
    await restart();
  }

  async function restart(): Promise<void> {
    missed.standby = 0;
    await standby.kill();
    await standby.start();
    say(`${standby.name} is back as the standby`);
  }

  async function watchPrimary(): Promise<boolean> {
    const isThere = await primary.query('select 1').then(
      () => true,
      () => false,
    );
    missed.primary = isThere ? 0 : missed.primary + 1;
    if (missed.primary < patience.primary) return isThere;
    if (isSafe) await failOver();
    else {
      say(`${primary.name} does not answer and starts anew: the standby may lack something`);
      await primary.kill();
      await primary.start();
      missed.primary = 0;
    }
    return false;
  }

  async function watchStandby(): Promise<void> {
    const [row = ''] = await primary.query(
      `select sync_state || ' ' || coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn), 1e9)::bigint from pg_stat_replication where application_name = '${standby.name}' and state = 'streaming'`,
    );
    const [state, behind] = row.split(' ');
    missed.standby = state === undefined || state === '' ? missed.standby + 1 : 0;
    if (missed.standby >= patience.standby) {
      say(`${standby.name} is gone; ${primary.name} goes on alone`);
      const wasThere = isSafe;
      isSafe = false;
      await setSynchronous(primary, false);
      await (wasThere ? restart() : becomeStandby());
    } else if (state === 'async' && Number(behind) < 16 * 1024 * 1024) {
      await setSynchronous(primary, true);
    } else if (state === 'quorum' && !isSafe) {
      await catchUp();
    }
  }

  /** Safe when the standby has what was written before commits began to wait for it. */
  async function catchUp(): Promise<void> {
    const [position = ''] = await primary.query('select pg_current_wal_lsn()');
    for (let asked = 0; asked < 20 && !isSafe; asked += 1) {
      const [has] = await primary.query(
        `select flush_lsn >= '${position}'::pg_lsn from pg_stat_replication where application_name = '${standby.name}' and sync_state = 'quorum'`,
      );
      if (has === 't') {
        isSafe = true;
        say(`${standby.name} has all that was answered`);
      } else await sleep(100);
    }
  }

  const watching = (async () => {
    while (!stopped.signal.aborted) {
      try {
        if (await watchPrimary()) await watchStandby();
      } catch (error) {
        say(`the watch goes on after: ${error instanceof Error ? error.message.split('\n')[0] : error}`);
      }
      await sleep(betweenMs);
    }
  })();

  return {
    get primary() {
      return primary;
    },
    get standby() {
      return standby;
    },
    get isSafe() {
      return isSafe;
    },
    get failovers() {
      return failovers;
    },
    async safe(limitMs = 120_000) {
      const until = performance.now() + limitMs;
      while (!isSafe) {
        if (performance.now() > until) throw new Error('the standby did not come back');
        await sleep(100);
      }
    },
    async stop() {
      stopped.abort();
      await watching;
      await Promise.all([primary.kill(), standby.kill()]);
    },
    killNow() {
      for (const server of [primary, standby])
        for (const { pid } of server.processes()) signal(pid, 'SIGKILL');
    },
  };
}
