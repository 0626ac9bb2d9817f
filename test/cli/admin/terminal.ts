/** The program at a terminal: what a person sees, and types. */
import { type Running, startCommand } from '../../support/command.ts';

/** Starts `andromeda` with `args`, its state in `stateHome`. */
export function atTerminal(
  stateHome: string,
  args: string[],
  env: Record<string, string> = {},
): Running & { ended: Running['result'] } {
  const own = { PATH: process.env.PATH, HOME: stateHome, XDG_STATE_HOME: stateHome, TERM: 'xterm' };
  const running = startCommand(args, {
    env: { ...own, ANDROMEDA_CREDENTIAL_STORE: 'file', ...env },
    terminal: true,
  });
  return { ...running, ended: running.result };
}
