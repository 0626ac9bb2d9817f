/** The program's commands as data: for every position on the command line, what can come next. */
import type { Command, Option } from 'commander';

export interface Position {
  /** The commands typed so far, each behind a slash; empty at the program itself. */
  path: string;
  commands: { name: string; summary: string }[];
  flags: Flag[];
}

export interface Flag {
  /** `-o`, where there is one. */
  short?: string;
  /** `--output` */
  long: string;
  summary: string;
  /** Whether a value follows. */
  takesValue: boolean;
  /** The values there are, where they are known. */
  values: string[];
}

/** Every position, the outer ones first. */
export function treeOf(program: Command, path = ''): Position[] {
  const position: Position = {
    path,
    commands: program.commands.map((one) => ({ name: one.name(), summary: one.description() })),
    flags: [...program.options.filter(({ hidden }) => !hidden).map(flagOf), help],
  };
  return [position, ...program.commands.flatMap((one) => treeOf(one, `${path}/${one.name()}`))];
}

const help: Flag = { short: '-h', long: '--help', summary: 'explain it', takesValue: false, values: [] };

function flagOf({ short, long, description, required, optional, argChoices }: Option): Flag {
  return {
    ...(short !== undefined && { short }),
    long: long ?? short ?? '',
    summary: description,
    takesValue: required || optional,
    values: argChoices ?? [],
  };
}

/** The names under which a flag is typed. */
export function namesOf({ short, long }: Flag): string[] {
  return short === undefined ? [long] : [short, long];
}

/** For a shell, text in single quotes; fish and the Bourne shells differ in how a quote gets into it. */
export function quoted(text: string, quote: string): string {
  return `'${text.replaceAll("'", quote)}'`;
}
