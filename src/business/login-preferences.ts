/** How a person wants to be logged in, on every cluster of every organization. */
import { parseLoginShell } from '../domain/login-shell.ts';
import type { CommandReply } from '../domain/operation.ts';
import { runCommand } from '../store/commands.ts';
import { updateLoginShell } from '../store/users.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './operation.ts';

/** Sets the login shell. Sending the one that is set already starts nothing on the clusters. */
export async function setLoginPreferences(
  { store }: BusinessDeps,
  { caller, body, command, now }: BusinessRequest<'setLoginPreferences'>,
): Promise<CommandReply<BusinessReply<'setLoginPreferences'>>> {
  const shell = parseLoginShell(body.shell);
  return runCommand(
    store,
    {
      operation: 'setLoginPreferences',
      headers: command,
      caller,
      request: [shell],
      about: { target: caller.userId, subject_user_id: caller.userId, details: shell },
      now,
    },
    {
      async apply(tx, commandId) {
        await updateLoginShell(tx, caller.userId, shell, now);
        return { result: { shell, command_id: commandId } };
      },
    },
  );
}
