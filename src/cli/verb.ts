/**
 * Commands of the program as data: usage, flags, and the function that runs. Converts them to Commander commands, with the
 * flags that every command of its kind has.
 */
import { type Argument, type Command, Option } from 'commander';
import type { EnvironmentOptions } from './environment.ts';
import { exitStatus } from './exit.ts';
import { type Api, createClient, type PlatformApi, type PlatformReader, type Reader } from './net/api.ts';
import { type Answer, printAnswer, type printer } from './output.ts';

interface Description {
  usage: string;
  summary: string;
  /**
   * Arguments after the prefix, `andromeda` or `andromeda admin`; whole lines for `own`. Left out: the example is the command
   * alone.
   */
  example?: string | string[];
  flags?: Option[];
  isUsual?: true;
}

export interface Verb extends Description {
  args?: Argument[];
  note?: string;
  /** Flags after the first argument are passed on, not parsed. */
  passesOn?: true;
  run(command: Command): Promise<number>;
}

export interface Noun {
  name: string;
  summary: string;
  verbs: Verb[];
}

export interface Part {
  prefix: string;
  finish(status: number): void;
}

interface Call<A, P, O> {
  api: A;
  platform: P;
  options: O;
}

interface OverApis<A, P, O> extends Description {
  passesOn?: true;
  /** The values of `-o`, the default first. Left out: table, json and yaml; empty: nothing is printed. */
  formats?: string[];
  run(call: Call<A, P, O>, ...args: string[]): Promise<Answer | undefined>;
}

export function reads<O = object>(verb: OverApis<Reader, PlatformReader, O>): Verb {
  return overApis(verb, []);
}

export function writes<O = object>(verb: OverApis<Api, PlatformApi, O>): Verb {
  return overApis(verb, [optional('--reason <text>', 'why, for the audit trail (the name of the command)')]);
}

/** A verb that calls no API, or calls one in its own way. */
export function own<O = object, A extends (string | undefined)[] = []>(
  verb: Omit<Verb, 'run'> & { run(options: O, ...args: A): Promise<number> },
): Verb {
  return { ...verb, run: (command) => verb.run(command.opts() as O, ...(command.args as A)) };
}

function overApis<O>(verb: OverApis<Api, PlatformApi, O>, reason: Option[]): Verb {
  const { formats = ['table', 'json', 'yaml'], flags = [] } = verb;
  const output = formats.length > 0 ? [outputFlag(formats)] : [];
  return {
    ...verb,
    flags: [...flags, ...output, ...reason, ...environmentFlags],
    async run(command) {
      const options = command.opts<EnvironmentOptions & { output?: string; reason?: string }>();
      const client = createClient(options, options.reason ?? nameOf(command));
      const answer = await verb.run({ ...client, options: options as O }, ...command.args);
      if (answer !== undefined) await printAnswer(answer, options.output);
      return answer?.status ?? exitStatus.ok;
    },
  };
}

export function required(flags: string, summary: string): Option {
  return new Option(flags, summary).makeOptionMandatory();
}

export const jsonFlag = optional('--json', 'print it as JSON').default(false);
export const yesFlag = optional('--yes', 'without asking');

export function optional(flags: string, summary: string): Option {
  return new Option(flags, summary);
}

export function repeatable(flags: string, summary: string): Option {
  return new Option(flags, `${summary}; repeatable`).argParser((value, previous: string[] | undefined) => [
    ...(previous ?? []),
    value,
  ]);
}

export const environmentFlags = [
  optional('--profile <name>', 'stored environment to use (ANDROMEDA_PROFILE; "default")'),
  optional('--url <platform_url>', 'environment to use in place of it (ANDROMEDA_URL)'),
];

export function outputFlag(formats: readonly string[]): Option {
  return new Option('-o, --output <format>', 'how to print it').choices(formats).default(formats[0]);
}

function addNoun(parent: Command, { name, summary, verbs }: Noun, part: Part): void {
  const group = parent.command(name).description(summary);
  const commands = verbs.map((verb) => addVerb(group, verb, part));
  const [first] = verbs.flatMap((verb, index) => examplesOf(verb, commands[index] ?? group, part));
  group.addHelpText('after', example(first ?? name));
}

export function addVerb(parent: Command, verb: Verb, part: Part): Command {
  const command = parent.command(verb.usage, { isDefault: verb.isUsual ?? false }).description(verb.summary);
  command.addHelpText('after', (verb.note ?? '') + example(...examplesOf(verb, command, part)));
  if (verb.passesOn) command.passThroughOptions();
  for (const argument of verb.args ?? []) command.addArgument(argument);
  for (const flag of verb.flags ?? []) command.addOption(flag);
  return command.action(async () => part.finish(await verb.run(command)));
}

function examplesOf({ example }: Verb, command: Command, { prefix }: Part): string[] {
  return example === undefined ? [nameOf(command)] : [example].flat().map((line) => prefix + line);
}

export function addAll(parent: Command, all: readonly (Noun | Verb)[], part: Part): void {
  for (const one of all) {
    if ('verbs' in one) addNoun(parent, one, part);
    else addVerb(parent, one, part);
  }
}

function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();
}

export function example(...lines: string[]): string {
  return `\nExample${lines.length > 1 ? 's' : ''}:\n${lines.map((line) => `  $ ${line}`).join('\n')}`;
}

type Printer<T> = ReturnType<typeof printer<T>>;

export function lists<Name extends string, T>(
  summary: string,
  printer: Printer<T>,
  name: Name,
  read: (api: Reader) => Promise<Record<Name, readonly T[]>>,
): Verb {
  const run = async ({ api }: { api: Reader }) => {
    const json = await read(api);
    return printer.many(json, json[name]);
  };
  return reads({ usage: 'list', summary, run });
}

export function changesOne<T>(
  noun: string,
  verb: string,
  summary: string,
  printer: Printer<T>,
  change: (api: Api, id: string) => Promise<T>,
  reason?: string,
): Verb {
  const why = reason === undefined ? '' : ` --reason '${reason}'`;
  return writes({
    usage: `${verb} <id>`,
    summary,
    example: `${noun} ${verb} ${noun}_01J8Z3XK5T7Q2M4N6P8R0S1V3W${why}`,
    run: async ({ api }, id = '') => printer.one(await change(api, id)),
  });
}
