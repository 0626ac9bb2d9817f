/** The help of every command of the program, as golden text: `GOLDEN=write node --test test/cli/help.test.ts` writes it. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Command } from 'commander';
import { exitStatus } from '../../src/cli/exit.ts';
import { createProgram } from '../../src/cli/program.ts';
import { hostCommands } from '../../src/host-commands.ts';

const golden = join(import.meta.dirname, 'help.golden.txt');

/** Every command of the program, by what one types for it. */
async function everyCommand(): Promise<Map<string, Command>> {
  const program = await createProgram(['completion'], hostCommands(), () => {});
  const commands = new Map<string, Command>();
  const visit = (command: Command, path: string) => {
    commands.set(path, command);
    for (const below of command.commands) visit(below, `${path} ${below.name()}`);
  };
  visit(program, 'andromeda');
  return commands;
}

function helpOf(command: Command): string {
  let text = '';
  const writeOut = (part: string) => {
    text += part;
  };
  command.configureOutput({ writeOut, getOutHelpWidth: () => 100 }).outputHelp();
  return text;
}

/** The lines of a help text that one could type, each on one line. */
function examplesIn(help: string): string[] {
  const [, examples = ''] = /\nExamples?:\n((?: {2}.*\n)+)$/.exec(help) ?? [];
  return examples
    .replaceAll('\\\n', '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace('  $ ', ''));
}

const commands = await everyCommand();

test('the help of every command is the golden text', () => {
  const text = [...commands].map(([path, command]) => `$ ${path} --help\n${helpOf(command)}`).join('\n');
  if (process.env['GOLDEN'] === 'write') writeFileSync(golden, text);
  assert.equal(text, readFileSync(golden, 'utf8'));
});

test('every command, argument and flag is described, in lines of at most 100 columns', () => {
  for (const [path, command] of commands) {
    assert.notEqual(command.description(), '', path);
    for (const { flags, description } of command.options) assert.ok(description, `${path} ${flags}`);
    for (const line of helpOf(command).split('\n')) assert.ok(line.length <= 100, `${path}: ${line}`);
  }
});

test('every command has an example, with its own name and flags that there are', () => {
  for (const [path, command] of commands) {
    const examples = examplesIn(helpOf(command));
    assert.notEqual(examples.length, 0, path);
    for (const example of examples) {
      const [, typed = ''] = /(andromeda .*?)\)?$/.exec(example) ?? [];
      const shown = [...commands.keys()].filter((name) => `${typed} `.startsWith(`${name} `)).at(-1) ?? '';
      assert.ok(`${shown} `.startsWith(`${path} `), `${path}: ${example}`);
      if (shown === 'andromeda ssh') continue; // what follows is for ssh
      const known = commands.get(shown)?.options.flatMap(({ short, long }) => [short, long]) ?? [];
      const flags = typed.replace(/'[^']*'/g, '').match(/(?<= )--?[a-z][a-z-]*/g) ?? [];
      for (const flag of flags) assert.ok(known.includes(flag), `${path}: ${example}: ${flag}`);
    }
  }
});

test('the program says what each exit status means', () => {
  const [, statuses = ''] =
    /\nExit statuses:\n((?: {2}.*\n)+)/.exec(helpOf(commands.get('andromeda') as Command)) ?? [];
  const named = statuses.match(/(?<= )\d+(?= )/g)?.map(Number);
  assert.deepEqual(
    named?.sort((a, b) => a - b),
    Object.values(exitStatus).sort((a, b) => a - b),
  );
});
