/** `andromeda admin key`: the service's own keys, on the host itself. What it does is handed in by `main.ts`. */
import { Argument, type Command } from 'commander';
import { type KeyKind, type KeyStep, keyKinds } from '../../domain/key-rotation.ts';
import type { KeyOptions, NewKeyOptions, ServerCommands } from '../server-commands.ts';
import { example, withConfig } from '../verb.ts';

const steps: [KeyStep, summary: string][] = [
  ['announce', 'make the next key, for everybody to know before it is used'],
  ['switch', 'put the next key into use; the one before still holds'],
  ['back', 'put the key from before into use again'],
  ['withdraw', 'drop the next key'],
  ['retire', 'drop the key from before'],
];

/** Adds the noun. */
export function addKey(admin: Command, server: ServerCommands, finish: (status: number) => void): void {
  const key = admin
    .command('key')
    .description("the service's own keys, and how one takes the place of another, on the host itself")
    .addHelpText('after', example('andromeda admin key list'));
  withConfig(key.command('list').description('print which keys there are, and which the service uses'))
    .addHelpText('after', example('andromeda admin key list'))
    .action(async (options: KeyOptions) => finish(await server.listKeys(options)));
  const anew = (noun: Command, summary: string) =>
    withConfig(noun.command('new').description(summary)).option(
      '--yes',
      'accept what it does to those who know the one before',
    );
  anew(key, 'make a key anew whose file is gone, as those who know the one before will notice')
    .addArgument(
      new Argument(
        '<key>',
        "the gateway's towards people or login nodes, the built-in sign-in's, or the audit trail's",
      ).choices([...keyKinds, 'audit']),
    )
    .addHelpText('after', example('andromeda admin key new client --yes'))
    .action(async (kind: KeyKind | 'audit', options: NewKeyOptions) =>
      finish(await server.newKey(kind, options)),
    );
  const hostKey = admin
    .command('host-key')
    .description('what the SSH gateway shows to people, on the host itself')
    .addHelpText('after', example('andromeda admin host-key new --yes'));
  anew(hostKey, 'make the host key anew when its file is gone: people are told that it has changed')
    .addHelpText('after', example('andromeda admin host-key new --yes'))
    .action(async (options: NewKeyOptions) => finish(await server.newKey('host', options)));
  for (const [step, summary] of steps) {
    const command = withConfig(key.command(step).description(summary)).addArgument(
      new Argument('<key>', "the gateway's towards people or login nodes, or the built-in sign-in's").choices(
        keyKinds,
      ),
    );
    if (step === 'switch' || step === 'retire')
      command.option('--force', 'although the key is not known everywhere, or is still needed');
    command
      .addHelpText('after', example(`andromeda admin key ${step} host`))
      .action(async (kind: KeyKind, options: KeyOptions) =>
        finish(await server.stepKey(step, kind, options)),
      );
  }
}
