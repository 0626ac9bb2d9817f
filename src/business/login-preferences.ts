/** How a person wants to be logged in, on every cluster of every organization. */
import { parseLoginShell } from '../domain/login-shell.ts';
import type { CommandReply } from '../domain/operation.ts';
import { runCommand } from '../store/commands.ts';
import { updateLoginShell } from '../store/people.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './operation.ts';

/** Sets the login shell. Sending the one that is set already starts nothing on the clusters. */
export async function setLoginPreferences(
  { store }: BusinessDeps,
  { caller, body, command, now }: BusinessRequest<'setLoginPreferences'>,
): Promise<CommandReply<BusinessReply<'setLoginPreferences'>>> {
  const shell = parseLoginShell(body.shell);
  return runCommand(
    store,
    { caller, command, now },
    {
      operation: 'setLoginPreferences',
      meaning: [shell],
      about: { target: caller.userId, subjectUserId: caller.userId, details: shell },
      async apply(tx, commandId) {
        await updateLoginShell(tx, caller.userId, shell);
        return { result: { shell, command_id: commandId } };
      },
    },
  );
}
