/**
 * A verb of the command line as data: what one types, and what it does with the two APIs. This file makes a command of
 * it: the flags every verb has, the client for its session, and the printing.
 */
import { type Command, Option } from 'commander';
import { type Answer, printAnswer } from './answer.ts';
import type { EnvironmentOptions } from './environment.ts';
import { type Api, createClient, type Platform, type PlatformReader, type Reader } from './net/api.ts';

/** What a verb works with: the Business API, the Platform API, and its own flags as commander hands them over. */
interface Call<A, P, O> {
  api: A;
  platform: P;
  options: O;
}

interface Description<A, P, O> {
  /** As commander reads it: `rename <slug> <name>`. */
  usage: string;
  summary: string;
  /** What follows the name of the program or of its part: `andromeda`, `andromeda admin`. */
  example: string;
  flags?: Option[];
  /** The forms of `-o`, the usual one first; left out: table, json and yaml; empty: nothing is printed. */
  formats?: string[];
  /** What follows the first argument is not ours to read. */
  passesOn?: true;
  /** Returns what to print; nothing where the verb has printed already. */
  run(call: Call<A, P, O>, ...args: string[]): Promise<Answer | undefined>;
}

export type Verb = Description<Api, Platform, never> & { writes: boolean };

export interface Noun {
  name: string;
  summary: string;
  verbs: Verb[];
}

/** The part of the program that verbs are added to. */
export interface Part {
  /** What stands before every example: `andromeda admin`. */
  prefix: string;
  /** Is given the exit status of what ran outside the client. */
  finish(status: number): void;
}

interface GivenOptions extends EnvironmentOptions {
  output?: string;
  reason?: string;
}

/** A verb that changes nothing. */
export function reads<O = object>(verb: Description<Reader, PlatformReader, O>): Verb {
  return { ...verb, writes: false };
}

/** A verb that changes something; it gets `--reason`. */
export function writes<O = object>(verb: Description<Api, Platform, O>): Verb {
  return { ...verb, writes: true };
}

export function required(flags: string, summary: string): Option {
  return new Option(flags, summary).makeOptionMandatory();
}

export function optional(flags: string, summary: string): Option {
  return new Option(flags, summary);
}

export function repeatable(flags: string, summary: string): Option {
  return new Option(flags, `${summary}; repeatable`).argParser(collect);
}

/** Adds a noun with its verbs. */
export function addNoun(parent: Command, { name, summary, verbs }: Noun, part: Part): void {
  const group = parent
    .command(name)
    .description(summary)
    .addHelpText('after', example(...verbs.slice(0, 1).map((verb) => `${part.prefix} ${verb.example}`)));
  for (const verb of verbs) addVerb(group, verb, part);
}

/** Adds a verb below `parent`; returns its command. */
export function addVerb(parent: Command, verb: Verb, part: Part): Command {
  const command = parent
    .command(verb.usage)
    .description(verb.summary)
    .addHelpText('after', example(`${part.prefix} ${verb.example}`));
  if (verb.passesOn) command.passThroughOptions();
  for (const flag of verb.flags ?? []) command.addOption(flag);
  const formats = verb.formats ?? ['table', 'json', 'yaml'];
  if (formats.length > 0) command.addOption(outputFlag(formats));
  if (verb.writes)
    command.addOption(optional('--reason <text>', 'why, for the audit trail (the name of the command)'));
  return environmentFlags(command).action((...given: unknown[]) =>
    perform(verb, given.at(-1) as Command, part),
  );
}

async function perform(verb: Verb, command: Command, { finish }: Part): Promise<void> {
  const options = command.opts<GivenOptions>();
  const client = createClient(options, options.reason ?? nameOf(command));
  const answer = await verb.run({ ...client, options: options as never }, ...command.args);
  if (answer === undefined) return;
  if (answer.status !== undefined) finish(answer.status);
  await printAnswer(answer, options.output);
}

/** `andromeda admin person add`. */
function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();
}

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

/** Adds `--config`, for what works on an installation of this host. */
export function withConfig(command: Command): Command {
  return command.option(
    '--config <file>',
    'the installation (YAML); where `service install` puts it otherwise',
  );
}

/** The last part of a help text. */
export function example(...lines: string[]): string {
  return `\nExample${lines.length > 1 ? 's' : ''}:\n${lines.map((line) => `  $ ${line}`).join('\n')}`;
}

/** For options that may be given several times: all the values. */
export function collect(value: string, previous: string[] | undefined): string[] {
  return [...(previous ?? []), value];
}

interface Printer<T> {
  one(json: T): Answer;
  many(json: unknown, rows: readonly T[]): Answer;
}

/** `list`: everything of one kind; `rows` finds it in the answer. */
export function lists<J, T>(
  noun: string,
  summary: string,
  printer: Printer<T>,
  read: (api: Reader) => Promise<J>,
  rows: (json: J) => readonly T[],
): Verb {
  return reads({
    usage: 'list',
    summary,
    example: `${noun} list`,
    async run({ api }) {
      const json = await read(api);
      return printer.many(json, rows(json));
    },
  });
}

/** A change to one thing that is named by its ID. */
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
