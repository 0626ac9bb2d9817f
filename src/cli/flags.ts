/** What commands have in common on the command line: the flags that choose an environment, and examples. */
import { type Command, Option } from 'commander';

/** Adds `--profile` and `--url`. */
export function environmentFlags(command: Command): Command {
  return command
    .addOption(new Option('--profile <name>', 'stored environment to use (ANDROMEDA_PROFILE; "default")'))
    .addOption(new Option('--url <platform_url>', 'environment to use in place of it (ANDROMEDA_URL)'));
}

/** `-o`, the usual form first. */
export function outputFlag(formats: readonly string[]): Option {
  return new Option('-o, --output <format>', 'how to print it').choices(formats).default(formats[0]);
}

/** The last part of a help text. */
export function example(...lines: string[]): string {
  return `\nExample${lines.length > 1 ? 's' : ''}:\n${lines.map((line) => `  $ ${line}`).join('\n')}`;
}

/** For options that may be given several times: all the values. */
export function collect(value: string, previous: string[] | undefined): string[] {
  return [...(previous ?? []), value];
}
