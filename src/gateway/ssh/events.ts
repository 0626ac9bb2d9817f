/**
 * The recorded facts of a session: person, key, target, source, times, how it ended, bytes, requested commands and
 * forwards. Never what was typed or shown.
 */
import type { SessionUses, SshSession } from '../../domain/access/ssh-session.ts';
import type { Attempt, Subject } from './decision.ts';

export type GatewayEvent =
  | { kind: 'opened'; at: number; session: SshSession }
  /** `uses`: undefined where they were lost with the session's process. */
  | { kind: 'closed'; at: number; session: SshSession; reason: string; uses: SessionUses | undefined }
  /** A person's own key was refused. */
  | { kind: 'refused'; at: number; subject: Subject; attempt: Attempt; reason: string; message: string };

/** A request that was made and allowed. */
export type Use =
  | { kind: 'shell' }
  | { kind: 'sftp' }
  | { kind: 'exec'; command: string }
  | { kind: 'forward'; to: string };

/** Limits on number and length, by what an operator would read. */
const maxListed = 20;
const maxLength = 200;

/** Collects the uses of a session. A command is latin1 text, one character a byte. */
export function createUses(): SessionUses & { add(use: Use): void } {
  const commands: string[] = [];
  const forwards: string[] = [];
  const uses = { commands, commandCount: 0, forwards, forwardCount: 0, shells: 0, files: 0 };
  return Object.assign(uses, {
    add(use: Use) {
      if (use.kind === 'shell') uses.shells += 1;
      else if (use.kind === 'sftp') uses.files += 1;
      else if (use.kind === 'exec') {
        uses.commandCount += 1;
        if (commands.length < maxListed) commands.push(shortened(use.command));
      } else {
        uses.forwardCount += 1;
        if (forwards.length < maxListed && !forwards.includes(use.to)) forwards.push(use.to);
      }
    },
  });
}

function shortened(latin1: string): string {
  const text = Buffer.from(latin1.slice(0, maxLength), 'latin1').toString('utf8');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a log line or a terminal must not be steered by it
  const plain = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, ' ');
  return latin1.length > maxLength ? `${plain}…` : plain;
}
