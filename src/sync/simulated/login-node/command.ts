/** Builds the program that runs for a client's request: environment, wrapper script, sandbox. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Account } from './messages.ts';
import type { Program } from './running.ts';
import { asAccount, type Sandbox, systemPath } from './sandbox.ts';
import { slurmDirectory } from './slurm-programs.ts';

export interface SessionContext {
  sandbox: Sandbox;
  account: Account;
  home: string;
  /** Ports of both ends of the connection, on loopback. */
  ports: { client: number | undefined; server: number };
}

export interface TerminalContext {
  path: string;
  term: string;
}

/** The start of every session's script: enters the home directory. */
const begin = `
cd -- "$HOME" 2>/dev/null || { echo "The home directory $HOME cannot be entered." >&2; cd /; }
unset OLDPWD
`;

/** Falls back to bash when the account's shell is missing; the gateway warns of that. */
const findShell = `
if ! [ -f "$SHELL" ] || ! [ -x "$SHELL" ]; then SHELL=/bin/bash; fi
`;

const sftpServers = [
  '/usr/lib/openssh/sftp-server',
  '/usr/libexec/openssh/sftp-server',
  '/usr/lib/ssh/sftp-server',
];

/** The login shell, or the login shell with a command. */
export function shellProgram(
  context: SessionContext,
  command: string | undefined,
  terminal?: TerminalContext,
): Program {
  const start = command === undefined ? 'exec "$SHELL" -l' : 'exec "$SHELL" -c "$1"';
  const rest = command === undefined ? [] : [command];
  return wrapped(context, begin + findShell + start, rest, terminal);
}

/** The system's sftp server. It refuses a uid without a name, and without namespaces the account's uid has none. */
export function sftpProgram(context: SessionContext): Program {
  const server = sftpServers.find((path) => existsSync(path));
  if (server === undefined || context.sandbox === 'root')
    return wrapped(context, 'echo "There is no sftp-server here; try scp -O." >&2; exit 127', []);
  return wrapped(context, `${begin}exec "$1"`, [server]);
}

function wrapped(
  context: SessionContext,
  script: string,
  args: string[],
  terminal?: TerminalContext,
): Program {
  const shArgs = ['-c', script, 'sh', ...args];
  const program = { file: '/bin/sh', args: shArgs, env: environment(context, terminal) };
  return asAccount(context.sandbox, context.account, program);
}

function environment(context: SessionContext, terminal: TerminalContext | undefined): Record<string, string> {
  const { account, home, ports } = context;
  return {
    HOME: home,
    USER: account.username,
    LOGNAME: account.username,
    SHELL: account.shell,
    PATH: `${slurmDirectory(dirname(home))}:${systemPath}`,
    LANG: 'C.UTF-8',
    SSH_CONNECTION: `127.0.0.1 ${ports.client} 127.0.0.1 ${ports.server}`,
    SSH_CLIENT: `127.0.0.1 ${ports.client} ${ports.server}`,
    ...(terminal ? { TERM: terminal.term, SSH_TTY: terminal.path } : {}),
  };
}
