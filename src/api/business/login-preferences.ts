/** How a person wants to be logged in, on every cluster of every organization. */
import { parseLoginShell } from '../../domain/people/login-shell.ts';
import { runCommand } from '../../store/audit/commands.ts';
import { updateLoginShell } from '../../store/people/people.ts';
import type { Operation } from './operation.ts';

/** Sets the login shell. Sending the one that is set already starts nothing on the clusters. */
export const setLoginPreferences: Operation<'setLoginPreferences'> = async (
  { store },
  { caller, body, command, now },
) => {
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
};
