/** Writes of operators: commands like any other, for people with `staff.operate`. */
import type { CommandReply, Request } from '../../domain/operation.ts';
import type { About } from '../../store/attempts.ts';
import { type CommandBody, runCommand } from '../../store/commands.ts';
import type { BusinessDeps } from '../operation.ts';
import { requireStaff } from './staff.ts';

/** Runs `change` as a command of the caller. `meaning` is what makes a replay the same request. */
export function operatorCommand<T>(
  { store }: Pick<BusinessDeps, 'store'>,
  { caller, command, now }: Pick<Request, 'caller' | 'command' | 'now'>,
  what: { operation: string; meaning: readonly unknown[]; about: About },
  change: CommandBody<T>['apply'],
): Promise<CommandReply<T>> {
  const { operation, meaning, about } = what;
  return runCommand<T>(
    store,
    { operation, headers: command, caller, request: meaning, about, now },
    { authorize: (tx) => requireStaff(tx.db, caller.userId, 'staff.operate'), apply: change },
  );
}
