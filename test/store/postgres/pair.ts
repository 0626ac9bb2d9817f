/** A primary with a standby that has all of it. */
import { sql } from 'kysely';
import type { Store } from '../../../src/store/engine/index.ts';
import { becomes } from '../../support/app.ts';
import { freePorts } from '../../support/ports.ts';
import { createPostgres, type TestPostgres } from '../../support/postgres-server.ts';

const more = [
  ['wal_level', 'replica'],
  ['max_wal_senders', '4'],
  // Its copy has all when a write is answered.
  ['synchronous_commit', 'on'],
];

export const socketOf = ({ directory, port }: TestPostgres) => `${directory}:${port}`;
export const urlOf = (...hosts: string[]) =>
  `postgres://postgres@/andromeda?${new URLSearchParams({ host: hosts.join(',') })}`;

export async function createPair() {
  const [port = 0, standbyPort = 0] = await freePorts(2);
  const primary = await createPostgres(undefined, { more, port });
  const standby = await createPostgres(undefined, { more, port: standbyPort, of: primary });
  /** Those that commits wait for. */
  const setStandbys = async (names: string) => {
    await primary.query(`alter system set synchronous_standby_names = '${names}'`);
    await primary.query('select pg_reload_conf()');
    // The checkpointer is who makes commits wait, or lets them go; behind a checkpoint it has read the setting.
    await primary.query('checkpoint');
  };
  /** Has commits wait for the standby from now on. */
  const waitForStandby = async () => {
    await setStandbys('*');
    const ask = "select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'";
    await becomes(async () => (await primary.query(ask)).length, 1);
  };
  return {
    primary,
    standby,
    url: urlOf(socketOf(primary), socketOf(standby)),
    setStandbys,
    waitForStandby,
    /** Ends the primary, and has the standby take over. */
    async failOver() {
      await waitForStandby();
      await primary.query('create table if not exists arrived (id bigint)');
      await primary.stop('SIGQUIT');
      await standby.query('select pg_promote()');
    },
    /** Starts the former primary, which waits for no standby. */
    async startFormer() {
      await primary.start();
      await setStandbys('');
    },
    async [Symbol.asyncDispose]() {
      await standby[Symbol.asyncDispose]();
      await primary[Symbol.asyncDispose]();
    },
  };
}

/** Of the one that is read from. */
export async function portOf({ read }: Pick<Store, 'read'>): Promise<number> {
  const { rows } = await sql<{ port: string }>`select current_setting('port') as port`.execute(read);
  return Number(rows[0]?.port);
}
