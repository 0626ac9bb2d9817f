/** `andromeda admin key`: the service's own keys, on the host itself. What it does is handed in by `main.ts`. */
import { Argument, type Command } from 'commander';
import { type KeyKind, type KeyStep, keyKinds } from '../../domain/key-rotation.ts';
import { example } from '../flags.ts';
import type { KeyOptions, ServerCommands } from '../server-commands.ts';

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

function withConfig(command: Command): Command {
  return command.option(
    '--config <file>',
    'the installation (YAML); where `service install` puts it otherwise',
  );
}
