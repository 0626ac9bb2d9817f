/** `andromeda admin secrets`: the secrets in a shared database, on the host itself. What it does is handed in by `main.ts`. */
import type { Command } from 'commander';
import type { RotateSecretsOptions, SecretsOptions, ServerCommands } from '../server-commands.ts';
import { example, withConfig } from '../verb.ts';

/** Adds the noun. */
export function addSecrets(admin: Command, server: ServerCommands, finish: (status: number) => void): void {
  const secrets = admin
    .command('secrets')
    .description("the service's own keys in a database that several servers share, on the host itself")
    .addHelpText('after', example('andromeda admin secrets list'));
  secrets
    .command('new-key')
    .description(
      'make the key that they are encrypted with, which is on every server and not in the database',
    )
    .argument('<file>', 'a file that is not there yet')
    .addHelpText('after', example('andromeda admin secrets new-key /etc/andromeda/secrets.key'))
    .action(async (file: string) => finish(await server.newSecretsKey(file)));
  withConfig(secrets.command('list').description('print their names, versions and ages'))
    .addHelpText('after', example('andromeda admin secrets list'))
    .action(async (options: SecretsOptions) => finish(await server.listSecrets(options)));
  withConfig(secrets.command('rotate').description('encrypt all of them with another key'))
    .requiredOption('--from <file>', 'the key that they are encrypted with')
    .requiredOption('--to <file>', 'the key that takes its place')
    .addHelpText('after', example('andromeda admin secrets rotate --from secrets.key --to secrets-2.key'))
    .action(async (options: RotateSecretsOptions) => finish(await server.rotateSecrets(options)));
}
