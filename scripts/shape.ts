/**
 * `npm run shape`: how large the source is, and how tied together. `--check` prints nothing while every figure is within its
 * bound, and fails where one is not. A bound is what was reached last: it comes down with the figure, until the aim is met.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import ts from 'typescript';
import { countWalks } from './walks.ts';

interface Figure {
  name: string;
  value: number;
  aim: number;
  /** What must not be passed today, where the aim is not met. */
  bound?: number;
  /** The worst of what is counted, to begin with. */
  examples?: string[];
}

const root = join(import.meta.dirname, '..');
const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
const sources = new Map(
  globSync('src/**/*.{ts,tsx}', { cwd: root })
    .filter((file) => !file.includes('/generated/'))
    .sort()
    .map((file) => [file, readFileSync(join(root, file), 'utf8')] as const),
);
const imports = new Map([...sources].map(([file, text]) => [file, importsOf(file, text)] as const));
// The walks take a service and some seconds, and have no bound.
const walked = values.check ? [] : await walks();
const figures = [...sizes(), ...folders(), ...functions(), ...walked, ...documents()];

for (const { name, value, aim, bound = aim, examples = [] } of figures) {
  const isPassed = value > bound;
  if (values.check && !isPassed) continue;
  const mark = value <= aim ? '✔' : isPassed ? '✖' : ' ';
  console.log(`${mark} ${name.padEnd(58)} ${String(value).padStart(6)}   aim ${aim}, bound ${bound}`);
  if (isPassed) for (const one of examples.slice(0, 10)) console.log(`      ${one}`);
  if (isPassed) process.exitCode = 1;
}

function sizes(): Figure[] {
  const importers = new Map<string, number>();
  for (const targets of imports.values())
    for (const target of targets) importers.set(target, (importers.get(target) ?? 0) + 1);
  const slight = [...sources].filter(
    ([file, text]) => linesOf(text) <= 30 && importers.get(file) === 1 && !file.endsWith('.d.ts'),
  );
  const lines = [...sources.values()].reduce((sum, text) => sum + linesOf(text), 0);
  return [
    { name: 'lines of src', value: lines, aim: 70_000, bound: 84_053 },
    { name: 'files of src', value: sources.size, aim: 560, bound: 554 },
    {
      name: 'files of at most 30 lines with one importer',
      value: slight.length,
      aim: 0,
      bound: 3,
      examples: slight.map(([file]) => file),
    },
  ];
}

function folders(): Figure[] {
  const top = (file: string) => file.split('/')[1] ?? '';
  const isInFolder = (file: string) => file.split('/').length > 2;
  const arrows = new Map<string, Set<string>>();
  for (const [file, targets] of imports)
    for (const target of targets)
      if (isInFolder(file) && top(file) !== top(target))
        arrows.set(top(file), (arrows.get(top(file)) ?? new Set()).add(top(target)));
  const perFolder = Map.groupBy(sources.keys(), dirname);
  const full = [...perFolder].sort(([, a], [, b]) => b.length - a.length);
  return [
    {
      name: 'top folders of src',
      value: new Set([...sources.keys()].filter(isInFolder).map(top)).size,
      aim: 9,
    },
    {
      name: 'files directly in the fullest folder',
      value: full[0]?.[1].length ?? 0,
      aim: 25,
      bound: 25,
      examples: full.map(([folder, files]) => `${folder}: ${files.length}`),
    },
    {
      name: 'arrows between top folders',
      value: [...arrows.values()].reduce((sum, { size }) => sum + size, 0),
      aim: 40,
      bound: 28,
    },
  ];
}

function functions(): Figure[] {
  const found = [...sources]
    .flatMap(([file, text]) => functionsOf(file, text))
    .sort((a, b) => b.lines - a.lines);
  const longer = (most: number) => found.filter(({ lines }) => lines > most);
  const examples = found.map(({ name, lines }) => `${lines} ${name}`);
  return [
    { name: 'functions of more than 80 lines', value: longer(80).length, aim: 0, examples },
    { name: 'functions of more than 50 lines', value: longer(50).length, aim: 0, examples },
  ];
}

async function walks(): Promise<Figure[]> {
  const { answer, account, login } = await countWalks();
  const figure = (name: string, { length: value }: string[], aim: number) => ({
    name,
    value,
    aim,
    bound: value,
  });
  return [
    figure('files that a key passes: POST to 201', answer, 20),
    figure('files that a key passes: commit to account', account, 28),
    figure('files that a key passes: login', login, 14),
  ];
}

function documents(): Figure[] {
  const count = globSync('docs/**/*.md', { cwd: root })
    .map((file) => readFileSync(join(root, file), 'utf8').split(/\s+/).length)
    .reduce((sum, length) => sum + length, 0);
  return [{ name: 'words of docs/', value: count, aim: 30_000, bound: 32_431 }];
}

function linesOf(text: string): number {
  return text.split('\n').length - 1;
}

/** The files of src that a file imports, types included. */
function importsOf(file: string, text: string): Set<string> {
  const { importedFiles } = ts.preProcessFile(text, true, true);
  const inside = importedFiles.map(({ fileName }) => fileName).filter((name) => name.startsWith('.'));
  return new Set(inside.map((name) => relative(root, join(root, dirname(file), name))));
}

function functionsOf(file: string, text: string): { name: string; lines: number }[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: { name: string; lines: number }[] = [];
  const lineOf = (position: number) => source.getLineAndCharacterOfPosition(position).line;
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      const lines = lineOf(node.end) - lineOf(node.getStart()) + 1;
      found.push({ name: `${file} ${node.name?.getText() ?? '(without a name)'}`, lines });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}
