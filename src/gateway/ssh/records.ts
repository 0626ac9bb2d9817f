/** Events of sessions as entries of the audit trail. */
import type { SessionUses } from '../../domain/access/ssh-session.ts';
import type { SessionEntry } from '../../domain/audit/audit.ts';
import type { GatewayEvent } from './events.ts';

/** The entry of an event: done by the person, to themselves, on the cluster. */
export function entryOf(event: GatewayEvent): SessionEntry {
  const at = new Date(event.at).toISOString();
  if (event.kind === 'refused') {
    const { subject, attempt, reason, message } = event;
    return {
      at,
      actorUserId: subject.userId,
      operation: 'ssh.login.refused',
      target: subject.keyId,
      clusterId: subject.clusterId,
      subjectUserId: subject.userId,
      reason: message,
      sourceAddress: attempt.remoteAddress,
      result: `refused: ${reason}`,
      details: `key ${attempt.fingerprint}`,
    };
  }
  const { session } = event;
  const who = `key ${session.keyId} ${session.fingerprint}, login node ${session.loginNode}`;
  const entry = {
    at,
    actorUserId: session.userId,
    target: session.id,
    clusterId: session.clusterId,
    subjectUserId: session.userId,
    sourceAddress: session.remoteAddress,
    result: 'done',
    session,
  };
  if (event.kind === 'opened')
    return { ...entry, operation: 'ssh.session.opened', reason: 'login', details: who };
  const { uses } = event;
  const seconds = Math.round((event.at - Date.parse(session.openedAt)) / 1000);
  const details = [
    who,
    `opened ${session.openedAt}, ${seconds} s`,
    ...(uses ? [`${session.bytesUp} bytes up, ${session.bytesDown} down`, ...describeUses(uses)] : []),
  ].join('; ');
  return { ...entry, operation: 'ssh.session.closed', reason: event.reason, details, ...(uses && { uses }) };
}

/** The entry of refusals that followed on one like them, the last of which is `event`. */
export function repeatedEntry(event: GatewayEvent & { kind: 'refused' }, count: number): SessionEntry {
  const entry = entryOf(event);
  return { ...entry, details: `${entry.details}; ${count} more ${count === 1 ? 'time' : 'times'}` };
}

function describeUses(uses: SessionUses): string[] {
  const { shells, files, commands, commandCount, forwards, forwardCount } = uses;
  const parts: string[] = [];
  if (shells > 0) parts.push(shells === 1 ? 'a shell' : `${shells} shells`);
  if (files > 0) parts.push('sftp');
  if (commandCount > 0) {
    const list = commands.map((command) => JSON.stringify(command)).join(', ');
    const more = commandCount > commands.length ? ` and ${commandCount - commands.length} more` : '';
    parts.push(`${commandCount === 1 ? 'command' : `${commandCount} commands`}: ${list}${more}`);
  }
  if (forwardCount > 0) {
    const times = forwardCount === 1 ? '' : `, ${forwardCount} times`;
    parts.push(`forwards to ${forwards.join(', ')}${times}`);
  }
  return parts;
}
