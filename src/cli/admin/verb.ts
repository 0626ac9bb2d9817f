/**
 * A verb of the operator's command line as data: what one types, and what it does with the API. This file makes a
 * command of it: the flags every verb has, the API for its session, and the printing.
 */
import { type Command, Option } from 'commander';
import type { EnvironmentOptions } from '../environment.ts';
import { collect, environmentFlags, example } from '../flags.ts';
import { print, say } from '../output.ts';
import type { Answer } from './answer.ts';
import { type Api, createApi, type Reader } from './client.ts';

/** `O` are the verb's own flags as commander hands them over, `A` is what it may do with the API. */
interface Description<A, O> {
  /** As commander reads it: `rename <slug> <name>`. */
  usage: string;
  summary: string;
  /** What follows `andromeda admin`. */
  example: string;
  flags?: Option[];
  /** The forms of `-o`, the usual one first; left out: table and json. */
  formats?: [string, ...string[]];
  /** Returns what to print; nothing where the verb has printed already. */
  run(call: { api: A; options: O }, ...args: string[]): Promise<Answer | undefined>;
}

export type Verb = Description<Api, never> & { writes: boolean };

export interface Noun {
  name: string;
  summary: string;
  verbs: Verb[];
}

interface GivenOptions extends EnvironmentOptions {
  output: string;
  reason?: string;
}

/** A verb that changes nothing. */
export function reads<O = object>(verb: Description<Reader, O>): Verb {
  return { ...verb, writes: false };
}

/** A verb that changes something; it gets `--reason`. */
export function writes<O = object>(verb: Description<Api, O>): Verb {
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
export function addNoun(admin: Command, { name, summary, verbs }: Noun): void {
  const group = admin
    .command(name)
    .description(summary)
    .addHelpText('after', example(...verbs.slice(0, 1).map((verb) => `andromeda admin ${verb.example}`)));
  for (const verb of verbs) addVerb(group, verb);
}

/** Adds a verb below `parent`; returns its command. */
export function addVerb(parent: Command, verb: Verb): Command {
  const command = parent
    .command(verb.usage)
    .description(verb.summary)
    .addHelpText('after', example(`andromeda admin ${verb.example}`));
  for (const flag of verb.flags ?? []) command.addOption(flag);
  const formats = verb.formats ?? ['table', 'json'];
  command.addOption(
    new Option('-o, --output <format>', 'how to print it').choices(formats).default(formats[0]),
  );
  if (verb.writes)
    command.addOption(optional('--reason <text>', 'why, for the audit trail (the name of the command)'));
  return environmentFlags(command).action((...given: unknown[]) => perform(verb, given.at(-1) as Command));
}

async function perform(verb: Verb, command: Command): Promise<void> {
  const options = command.opts<GivenOptions>();
  const api = createApi(options, options.reason ?? nameOf(command));
  const answer = await verb.run({ api, options: options as never }, ...command.args);
  if (answer === undefined) return;
  if (options.output === 'json') return print(JSON.stringify(answer.json, null, 2));
  if (answer.text !== '') print(answer.text);
  if (answer.said !== undefined) say(answer.said);
}

/** `andromeda admin member add`. */
function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();
}
