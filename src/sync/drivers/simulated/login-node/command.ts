/** From what a client asks for to the program that runs: environment, wrapper script, sandbox. */
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import type { Account } from './messages.ts';
import { ownProgram } from './own-program.ts';
import { asAccount, requireOrdinary, type Sandbox, systemPath } from './sandbox.ts';
import type { Program } from './spawn.ts';

export interface SessionContext {
  sandbox: Sandbox;
  account: Account;
  home: string;
  /** "client-address client-port server-address server-port" */
  sshConnection: string;
}

export interface TerminalContext {
  path: string;
  term: string;
  stty: string[];
}

/** What every session begins with: terminal modes (as many arguments as $1 says), then the home directory. */
const begin = `
n=$1; shift
if [ "$n" -gt 0 ]; then
  words=; while [ "$n" -gt 0 ]; do words="$words '$1'"; shift; n=$((n-1)); done
  eval "stty $words" 2>/dev/null
  unset words
fi
unset n
cd -- "$HOME" 2>/dev/null || { echo "The home directory $HOME cannot be entered." >&2; cd /; }
unset OLDPWD
`;

const findShell = `
if ! [ -f "$SHELL" ] || ! [ -x "$SHELL" ]; then
  echo "Your login shell $SHELL is not available on this machine; using /bin/bash." >&2
  SHELL=/bin/bash
fi
`;

const sftpServers = [
  '/usr/lib/openssh/sftp-server',
  '/usr/libexec/openssh/sftp-server',
  '/usr/lib/ssh/sftp-server',
];

/** The login shell, or a command that it runs. */
export function shellProgram(
  context: SessionContext,
  command: string | undefined,
  terminal: TerminalContext | undefined,
): Program {
  const start = command === undefined ? 'exec "$SHELL" -l' : 'exec "$SHELL" -c "$1"';
  const rest = command === undefined ? [] : [command];
  return wrapped(context, begin + findShell + start, rest, terminal);
}

/** The system's sftp server, or our own where there is none or where it would not know the account. */
export function sftpProgram(context: SessionContext, choice: 'system' | 'own'): Program {
  const system = sftpServers.find((path) => existsSync(path));
  if (choice === 'system' && system && hasName(context.sandbox)) {
    return wrapped(context, `${begin}exec "$1"`, [system], undefined);
  }
  return ownSftpProgram(context);
}

/** sftp-server refuses a uid without an entry in passwd; only the namespace has one for every account. */
function hasName(sandbox: Sandbox): boolean {
  if (sandbox.kind !== 'self') return sandbox.kind === 'namespace';
  try {
    return userInfo().uid >= 0;
  } catch {
    return false;
  }
}

/**
 * Our own sftp server starts as root and drops to the account by itself once it is loaded, because the account
 * may not be able to read our code.
 */
function ownSftpProgram(context: SessionContext): Program {
  const { sandbox, account } = context;
  const env = environment(context, undefined);
  if (sandbox.kind === 'self') return { ...ownProgram('sftp'), env };
  requireOrdinary(account);
  const ids = [String(account.uid), String(account.gid)];
  if (sandbox.kind === 'root') {
    const { file, args } = ownProgram('sftp');
    return { file, args: [...args, ...ids], env };
  }
  const { file, args } = ownProgram('sftp', sandbox);
  return { file: 'nsenter', args: [...sandbox.enter, '--', file, ...args, ...ids], env };
}

function wrapped(
  context: SessionContext,
  script: string,
  args: string[],
  terminal: TerminalContext | undefined,
): Program {
  const stty = terminal?.stty ?? [];
  const shArgs = ['-c', script, 'sh', String(stty.length), ...stty, ...args];
  return asAccount(context.sandbox, context.account, '/bin/sh', shArgs, environment(context, terminal));
}

function environment(context: SessionContext, terminal: TerminalContext | undefined): Record<string, string> {
  const { account, home, sshConnection } = context;
  const parts = sshConnection.split(' ');
  return {
    HOME: home,
    USER: account.username,
    LOGNAME: account.username,
    SHELL: account.shell,
    PATH: systemPath,
    LANG: 'C.UTF-8',
    SSH_CONNECTION: sshConnection,
    SSH_CLIENT: [parts[0], parts[1], parts[3]].join(' '),
    ...(terminal ? { TERM: terminal.term, SSH_TTY: terminal.path } : {}),
  };
}
