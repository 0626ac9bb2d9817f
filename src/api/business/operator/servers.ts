/** The servers that share the database, as operators see them. */
import { listServers } from '../../../store/servers/servers.ts';
import type { Operation } from '../operation.ts';
import { requireStaff } from './staff.ts';

/** In the order in which they were started; those that are gone for a while as well. */
export const operatorListServers: Operation<'operatorListServers'> = async ({ store }, { caller }) => {
  await requireStaff(store.read, caller.userId, 'staff.read');
  const servers = await listServers(store);
  return {
    servers: servers.map(({ id, name, version, isLive, startedAt, seenAt, leases }) => ({
      id,
      name,
      version,
      state: isLive ? ('live' as const) : ('gone' as const),
      answers: id === store.server.id,
      started_at: startedAt,
      seen_at: seenAt,
      leases,
    })),
  };
};
