/** The SSH gateway, as operators see it: its keys, and who is connected. */
import { DomainError } from '../../../domain/error.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import { requestClosing } from '../../../store/audit/open-sessions.ts';
import { listPastSessions } from '../../../store/audit/past-sessions.ts';
import type { Operation } from '../operation.ts';
import { pastSessionBody, sessionBody, utcTimes } from '../ssh-sessions.ts';
import { clusterOf, personOf } from './about.ts';
import { requireOperator, requireStaff } from './staff.ts';

/** How people and login nodes know the gateway. */
export const operatorGetGateway: Operation<'operatorGetGateway'> = async ({ store, gateway }, { caller }) => {
  await requireStaff(store.read, caller.userId, 'staff.read');
  const { hostname, port, hostKeys, publicKeys } = gateway;
  const [hostKey = '', ...otherHostKeys] = hostKeys;
  const [publicKey = '', ...otherPublicKeys] = publicKeys;
  return {
    hostname,
    port,
    host_key: hostKey,
    other_host_keys: otherHostKeys,
    public_key: publicKey,
    other_public_keys: otherPublicKeys,
  };
};

/** The sessions that are open, oldest first. */
export const operatorListSessions: Operation<'operatorListSessions'> = async (
  { store, gateway },
  { caller },
) => {
  await requireStaff(store.read, caller.userId, 'staff.read');
  const oldestFirst = [...(await gateway.sessions())].sort((a, b) => (a.openedAt < b.openedAt ? -1 : 1));
  return { sessions: oldestFirst.map(sessionBody) };
};

/** The sessions that are over, the last that ended first. They tell as much as the audit trail does. */
export const operatorListPastSessions: Operation<'operatorListPastSessions'> = async (
  { store },
  { caller, query },
) => {
  await requireStaff(store.read, caller.userId, 'staff.audit');
  const { person, cluster, address, key, after: before, limit = 100, ...times } = query;
  const filter = {
    userId: person === undefined ? undefined : await personOf(store.read, person),
    clusterId: cluster === undefined ? undefined : await clusterOf(store.read, cluster),
    address,
    key,
    ...utcTimes(times),
  };
  const sessions = await listPastSessions(store.read, filter, { before, limit });
  return { sessions: sessions.map(pastSessionBody) };
};

/** Closes a session, and shows the person the reason. */
export const operatorCloseSession: Operation<'operatorCloseSession'> = async (deps, request) => {
  const id = request.path.sessionID;
  const text = `An operator has closed this session: ${request.command.auditReason}`;
  const session = (await deps.gateway.sessions()).find((one) => one.id === id);
  const about = {
    target: id,
    ...(session ? { clusterId: session.clusterId, subjectUserId: session.userId } : {}),
  };
  const reply = await runCommand(deps.store, request, {
    operation: 'operatorCloseSession',
    meaning: [id],
    about,
    authorize: requireOperator,
    async apply(tx) {
      if (!session) throw new DomainError('not_found', 'There is no such session any more.');
      await requestClosing(tx, { id, text });
      return { result: sessionBody(session), about: { details: session.loginName } };
    },
  });
  // Only what is in the trail is done; closing twice does no harm.
  deps.gateway.close(id, text);
  return reply;
};
