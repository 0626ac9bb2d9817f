/** No function is longer than 80 lines: one that is cannot be held in the head, and wants smaller parts. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import ts from 'typescript';

const longest = 80;
const src = join(import.meta.dirname, '../src');

/** Those that are longer, with the most lines that each may have. They may shrink or go, and none may come. */
const allowed: Record<string, number> = {};

test(`no function in src is longer than ${longest} lines, but for those that are known`, () => {
  const long = new Map(longFunctions().map(({ name, lines }) => [name, lines]));
  const grown = [...long].filter(([name, lines]) => lines > (allowed[name] ?? longest));
  assert.deepEqual(grown, [], 'make smaller parts of it; the list of exceptions does not grow');
  const gone = Object.keys(allowed).filter((name) => !long.has(name));
  assert.deepEqual(gone, [], 'it is short now: strike it from the list');
});

function longFunctions(): { name: string; lines: number }[] {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' });
  return files.filter((file) => /\.tsx?$/.test(file)).flatMap((file) => longFunctionsOf(file));
}

function longFunctionsOf(file: string): { name: string; lines: number }[] {
  const text = readFileSync(join(src, file), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: { name: string; lines: number }[] = [];
  const lineOf = (position: number) => source.getLineAndCharacterOfPosition(position).line;
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node)) {
      const lines = lineOf(node.end) - lineOf(node.getStart()) + 1;
      if (lines > longest) found.push({ name: `${file} ${nameOf(node)}`, lines });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** What a function is called, or what it is assigned to. */
function nameOf(node: ts.SignatureDeclaration): string {
  const { parent } = node;
  const named =
    node.name ??
    (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) ? parent.name : undefined);
  return named?.getText() ?? '(without a name)';
}
