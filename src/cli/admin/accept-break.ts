/** `andromeda admin audit accept-break`, on the host itself. What it does is handed in by `main.ts`. */
import type { Command } from 'commander';
import { usage } from '../exit.ts';
import type { ServerCommands } from '../server-commands.ts';
import { example, withConfig } from '../verb.ts';

export function addAcceptBreak(
  audit: Command,
  server: ServerCommands,
  finish: (status: number) => void,
): void {
  withConfig(audit.command('accept-break'))
    .description('have the audit trail go on behind an entry that does not fit, on the host itself; for good')
    .argument('<number>', 'the entry that `audit verify` names')
    .addHelpText('after', example('andromeda admin audit accept-break 4711'))
    .action(async (text: string, options: { config?: string }) => {
      if (!/^[1-9]\d{0,14}$/.test(text)) throw usage(`'${text}' is no number of an entry.`);
      finish(await server.acceptAuditBreak(Number(text), options));
    });
}
