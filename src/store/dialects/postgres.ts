/**
 * PostgreSQL, which several servers share: one connection for writing (`postgres-writes.ts`), a few for reading
 * (`postgres-reads.ts`), and one that listens to what the others tell (`postgres-others.ts`). Each is made when it is needed, and again where it is lost.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { type PostgresTarget, parsePostgresUrl } from '../../lib/postgres-url.ts';
import type { Connections } from './dialect.ts';
import { type Connect, type ConnectOptions, createConnector, restMs } from './postgres-connect.ts';
import { PostgresError } from './postgres-fault.ts';
import { HeldUp } from './postgres-held-up.ts';
import { migrating } from './postgres-migrations.ts';
import { findObstacle } from './postgres-obstacle.ts';
import { Listening } from './postgres-others.ts';
import { createPool, type Pool } from './postgres-pool.ts';
import { queryOn, readingOn } from './postgres-reads.ts';
import {
  asRefusal,
  connectFirst,
  prepareSchema,
  requireUsable,
  type StartOptions,
} from './postgres-start.ts';
import { Writes } from './postgres-writes.ts';

/**
 * So many connections at most, with the one that writes and the one that listens: docs/scale.md says what a database needs to
 * allow.
 */
const sizes = {
  requests: { queries: 4, moments: 2 },
  service: { queries: 2, moments: 1 },
  messages: 1,
};
/** What has waited so long when the database falls silent is failed, and asked elsewhere. */
const silentMs = 2_000;
/** A connection that was closed is gone from the database a moment later. */
const crowdedMs = 100;

export interface PostgresOptions extends StartOptions {
  /** By which the others know this server. */
  serverId: string;
}

/** Opens it. Throws a `DomainError` with a sentence where it cannot be used. */
export async function openPostgres(url: string, options: PostgresOptions): Promise<Connections> {
  const target = parsePostgresUrl(url);
  const connect = createConnector(target);
  const first = await connectFirst(connect, target, options);
  try {
    await requireUsable(first, target, options.log);
    await prepareSchema(first, target);
  } catch (error) {
    throw asRefusal(error, target);
  } finally {
    await first.close();
  }
  return serving(connect, { ...options, target });
}

/** Once it can be used. */
function serving(connect: Connect, options: PostgresOptions & { target: PostgresTarget }): Connections {
  const pools: Pool[] = [];
  const connectAnyway: Connect = (one) => connectCrowded(connect, one, pools);
  function poolFor(use: ConnectOptions['use'], size: number): Pool {
    const pool = createPool({ size, connect: () => connectAnyway({ use }) });
    pools.push(pool);
    return pool;
  }
  const heldUp = new HeldUp();
  const readingFor = (use: 'requests' | 'service') =>
    readingOn({
      queries: poolFor(use, sizes[use].queries),
      moments: poolFor(use, sizes[use].moments),
      heldUp,
    });
  const forMessages = poolFor('messages', sizes.messages);
  const listening = new Listening({
    ...options,
    connect: connectAnyway,
    onSilence() {
      for (const one of [...pools, writes]) one.endIfSilent(silentMs);
    },
  });
  const notifying: Listening['notifying'] = (...commit) => listening.notifying(...commit);
  const writes = new Writes({
    connect: connectAnyway,
    notifying,
    heldUp,
    onCommitted: (version) => listening.committed(version),
  });
  const forService = readingFor('service');
  return {
    ...forService,
    unordered: forService.reader,
    forRequests: readingFor('requests'),
    transact: (body, options) => writes.transact(body, options),
    migrating: (body) => migrating({ ...options, connect, notifying }, body),
    begin: () => listening.begin(),
    findObstacle: () => findObstacle(connect),
    others: {
      announce: (db, changes) => writes.announce(db, changes),
      listen: (listeners) => listening.listen(listeners),
      async send(topic, body) {
        await queryOn(forMessages, (session) => session.script(listening.sending(topic, body)));
      },
    },
    async close() {
      await Promise.all([listening, writes, ...pools].map((one) => one.close()));
    },
  };
}

/** Where the database takes no more connections, it gets those back that nobody uses here, and is asked again. */
async function connectCrowded(
  connect: Connect,
  options: ConnectOptions,
  pools: readonly Pool[],
): ReturnType<Connect> {
  try {
    return await connect(options);
  } catch (error) {
    const isCrowded = error instanceof PostgresError && error.sqlState === '53300';
    const closed = isCrowded ? pools.reduce((sum, pool) => sum + pool.closeIdle(), 0) : 0;
    if (closed === 0) throw error;
    await wait(restMs + crowdedMs);
    return connect(options);
  }
}
