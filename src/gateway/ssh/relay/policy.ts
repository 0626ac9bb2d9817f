/**
 * The policy of messages between a person and a login node, as a pure function ("SSH gateway behaviour", Supported
 * and Refused; RFC 4254). The relay asks it about every request, and obeys. Requests that are not named here are
 * refused.
 */
import { isLoopback } from '../../../lib/source-address.ts';
import { proveRequest } from '../transport/host-keys.ts';
import { commandLine, loginShellLine } from './exec-line.ts';

export type Side = 'client' | 'node';

/** A request: to open a channel, of a channel, or of the connection (global). */
export type Ask =
  | { kind: 'open'; type: string; host?: string; port?: number }
  | { kind: 'request'; channel: string; name: string; command?: string; subsystem?: string }
  | { kind: 'global'; name: string };

export type Verdict =
  /** Passed on unchanged. */
  | { do: 'allow' }
  /** Never passed on; answered with a failure where an answer is wanted. */
  | { do: 'refuse'; reason: string }
  /** Passed on as an `exec` request with this command (latin1). */
  | { do: 'exec'; command: string }
  /** Not passed on: the gateway itself refuses further session channels. */
  | { do: 'no-more-sessions' }
  /** Answered by the gateway with proofs of its own host keys. */
  | { do: 'prove-host-keys' };

const allow: Verdict = { do: 'allow' };
const refuse = (reason: string): Verdict => ({ do: 'refuse', reason });

/** `isOfAccount`: this is the account's shell on the login node, so that sshd there starts it, once, as it does without us. */
export interface LoginShell {
  path: string;
  isOfAccount: boolean;
}

/** Decides about a request of `side` on a connection whose sessions run with the login shell `shell`. */
export function judge(side: Side, ask: Ask, shell: LoginShell): Verdict {
  if (ask.kind === 'global') return judgeGlobal(side, ask.name);
  if (side === 'node') return ask.kind === 'open' ? judgeNodeOpen(ask.type) : judgeNodeRequest(ask.name);
  return ask.kind === 'open' ? judgeOpen(ask) : judgeRequest(ask, shell);
}

function judgeOpen(ask: Ask & { kind: 'open' }): Verdict {
  if (ask.type === 'session') return allow;
  if (ask.type !== 'direct-tcpip') return refuse(`${printable(ask.type)} channels are not supported here`);
  const host = ask.host ?? '';
  if (isLoopback(host)) return allow;
  return refuse(
    `forwarding to ${printable(host)}:${ask.port ?? 0} is refused: only localhost, 127.0.0.0/8 and ::1 on the login node`,
  );
}

const passedUnchanged = new Set(['pty-req', 'window-change', 'signal', 'break', 'eow@openssh.com']);

function judgeRequest(ask: Ask & { kind: 'request' }, { path, isOfAccount }: LoginShell): Verdict {
  if (ask.channel !== 'session')
    return ask.name === 'eow@openssh.com' ? allow : refuse(`${printable(ask.name)} needs a session`);
  if (passedUnchanged.has(ask.name)) return allow;
  if (ask.name === 'shell') return isOfAccount ? allow : { do: 'exec', command: loginShellLine(path) };
  if (ask.name === 'exec') {
    const command = ask.command ?? '';
    if (command.includes('\0')) return refuse('a command holds no NUL');
    return { do: 'exec', command: isOfAccount ? command : commandLine(path, command) };
  }
  if (ask.name === 'subsystem')
    return ask.subsystem === 'sftp' ? allow : refuse(`the only subsystem is sftp`);
  return refuse(`${printable(ask.name)} is not supported here`);
}

/** `keepalive@openssh.com` is refused like others: a failure is an answer too, and shows that this side is alive. */
function judgeGlobal(side: Side, name: string): Verdict {
  if (side === 'client' && name === 'no-more-sessions@openssh.com') return { do: 'no-more-sessions' };
  if (side === 'client' && name === proveRequest) return { do: 'prove-host-keys' };
  return refuse(`${printable(name)} is not supported here`);
}

const judgeNodeOpen = (type: string): Verdict => refuse(`${printable(type)} towards a person is refused`);

const fromNode = new Set(['exit-status', 'exit-signal', 'eow@openssh.com', 'xon-xoff']);

const judgeNodeRequest = (name: string): Verdict =>
  fromNode.has(name) ? allow : refuse(`${printable(name)} is for the gateway`);

/** Makes text of the other side safe for a terminal and a log line. */
export function printable(text: string, most = 120): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, most);
}

/** The length limit of an operator's reason. */
export const noticeLength = 500;
