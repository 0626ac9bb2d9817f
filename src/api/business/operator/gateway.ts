/** The SSH gateway, as operators see it: its keys, and who is connected. */
import { listPastSessions } from '../../../store/audit/past-sessions.ts';
import type { Operation } from '../operation.ts';
import { closing, openSessions, pastSessionBody, utcTimes } from '../ssh-sessions.ts';
import { auditorReads, requireOperator, staffReads, subjectsOf } from './about.ts';

export const operatorGetGateway = staffReads<'operatorGetGateway'>(async ({ gateway }) => {
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
});

export const operatorListSessions = staffReads<'operatorListSessions'>(async ({ gateway }) => {
  return openSessions(await gateway.sessions());
});

/** The sessions that are over, the last that ended first. They tell as much as the audit trail does. */
export const operatorListPastSessions = auditorReads<'operatorListPastSessions'>(
  async ({ store }, { query }) => {
    const { address, key, after: before, limit = 100, ...asked } = query;
    const filter = { ...(await subjectsOf(store.read, asked)), address, key, ...utcTimes(asked) };
    const sessions = await listPastSessions(store.read, filter, { before, limit });
    return { sessions: sessions.map(pastSessionBody) };
  },
);

export const operatorCloseSession: Operation<'operatorCloseSession'> = (deps, request) =>
  closing(deps, request, {
    operation: 'operatorCloseSession',
    authorize: requireOperator,
    text: `An operator has closed this session: ${request.command.auditReason}`,
    isTheirs: () => true,
    absent: 'There is no such session any more.',
  });
