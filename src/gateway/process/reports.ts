/** Handles questions and reports of gateway processes on their way to the rest of the service. */
import type { SshSession } from '../../domain/access/ssh-session.ts';
import { messageOf } from '../../lib/error-message.ts';
import type { EventName, LogEvents } from '../../lib/log.ts';
import { defaultLimits } from '../ssh/limits.ts';
import type { GatewaysOptions } from './gateways.ts';
import type { Member } from './member.ts';
import type { FromProcess } from './messages.ts';

/** Limit on questions of one process that are being answered; no process has more logins under way. */
const mostQuestions = 10_000;

/** Time within which an allowed login has become a session or failed. */
export function loginMs({ limits }: GatewaysOptions['settings']): number {
  return (limits.loginGraceMs ?? defaultLimits.loginGraceMs) + slackMs;
}

/** Allowance for messages in transit between the processes. */
const slackMs = 5_000;

type Message<Type extends FromProcess['type']> = Extract<FromProcess, { type: Type }>;

type Options = Pick<GatewaysOptions, 'authorize' | 'record' | 'log' | 'settings'>;

export function createReports({ authorize, record, log, settings }: Options) {
  return {
    authorize(member: Member, { id, attempt, openOn }: Message<'authorize'>) {
      const undecided = (error: unknown) =>
        void member.send({ type: 'undecided', id, message: messageOf(error) });
      if (member.questions >= mostQuestions) return undecided(new Error('too many questions at once'));
      member.questions += 1;
      authorize(attempt, openOn)
        .then((decision) => {
          if (!openOn) member.decided(decision, loginMs(settings));
          member.send({ type: 'decision', id, decision });
        }, undecided)
        .finally(() => {
          member.questions -= 1;
        });
    },

    /** Confirms a record once it is written. A record that is delivered twice is written once. */
    record(member: Member, { seq, event }: Message<'record'>) {
      const confirm = () => {
        member.writing.delete(seq);
        member.send({ type: 'recorded', seq });
      };
      if (!member.onRecord(seq, event)) {
        if (!member.writing.has(seq)) confirm();
        return;
      }
      member.writing.add(seq);
      void record(event, member.isFound).then(confirm);
    },

    /** Writes a line of a process into the one log. */
    log({ pid }: Member, { level, event, fields }: Message<'log'>): void {
      if (!event.startsWith('gateway.')) return;
      // From the same build, the event is a known one. From another build it may not be, which does no harm.
      log[level](event as EventName, { ...fields, pid } as unknown as LogEvents[EventName]);
    },

    /** Records the end of sessions whose process is gone. */
    ended(sessions: Iterable<SshSession>): void {
      const at = Date.now();
      const reason = 'gateway_process_ended';
      for (const session of sessions) void record({ kind: 'closed', at, session, reason, uses: undefined });
    },
  };
}
