/** Each test makes its own state: none reads what another has left in a variable that they share. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import ts from 'typescript';

const root = import.meta.dirname;

test('no test reads a variable that another test has set', () => {
  const found = globSync('**/*.test.ts', { cwd: root }).sort();
  assert.deepEqual(
    found.flatMap((file) => chainsIn(file, readFileSync(join(root, file), 'utf8'))),
    [],
    'make it in the test that needs it, or in `before` where all of them only read it',
  );
});

test('the rule finds a chain, and takes what `before` makes and what a test has for itself', () => {
  const chain = "let key; test('a', () => { key = 1; }); test('b', () => { use(key); });";
  assert.deepEqual(chainsIn('x', chain), ['x:1 key']);
  assert.deepEqual(
    chainsIn('x', `test('all', async (t) => { ${chain.replaceAll('test(', 'await t.test(')} });`),
    ['x:1 key'],
  );
  assert.deepEqual(chainsIn('x', "let n = 0; test('a', () => { n++; }); test('b', () => { n++; });"), [
    'x:1 n',
  ]);
  assert.deepEqual(chainsIn('x', "let at; before(() => { at = 1; }); test('a', () => { use(at); });"), []);
  assert.deepEqual(chainsIn('x', "test('a', () => { let n = 0; each(() => { n += 1; }); use(n); });"), []);
  assert.deepEqual(
    chainsIn('x', "let key; test('a', () => { key = 1; use(key); }); test('b', () => { use({ key: 2 }); });"),
    [],
  );
});

/** Variables of a file that one test sets and another one reads: `file:line name`. */
function chainsIn(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const uses = new Map<ts.VariableDeclaration, { setters: Set<ts.Node>; readers: Set<ts.Node> }>();
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && isUse(node)) {
      const declaration = declarationOf(node);
      const inTest = declaration && testAround(node, declaration);
      if (inTest) {
        const use = uses.get(declaration) ?? { setters: new Set(), readers: new Set() };
        uses.set(declaration, use);
        const { isSet, isRead } = accessOf(node);
        if (isSet) use.setters.add(inTest);
        if (isRead) use.readers.add(inTest);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return [...uses]
    .filter(([, { setters, readers }]) =>
      [...readers].some((reader) => [...setters].some((setter) => setter !== reader)),
    )
    .map(
      ([one]) =>
        `${file}:${source.getLineAndCharacterOfPosition(one.getStart()).line + 1} ${one.name.getText()}`,
    );
}

/** Not the name of a property, nor where something is declared. */
function isUse(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node;
  return !ts.isVariableDeclaration(parent) || parent.initializer === node;
}

/** The `let` that a name means, in the nearest block around it that declares the name. */
function declarationOf(use: ts.Identifier): ts.VariableDeclaration | undefined {
  for (let node: ts.Node = use.parent; node; node = node.parent) {
    if (ts.isFunctionLike(node) && node.parameters.some(({ name }) => name.getText() === use.text))
      return undefined;
    if (!ts.isBlock(node) && !ts.isSourceFile(node)) continue;
    const declared = node.statements
      .filter((statement) => ts.isVariableStatement(statement))
      .flatMap(({ declarationList }) => [...declarationList.declarations]);
    const found = declared.find(({ name }) => ts.isIdentifier(name) && name.text === use.text);
    if (found) return (found.parent.flags & ts.NodeFlags.Let) !== 0 ? found : undefined;
    if (declared.some(({ name }) => !ts.isIdentifier(name) && name.getText().includes(use.text)))
      return undefined;
  }
  return undefined;
}

/** The outermost test below the declaration that the use lies in; undefined in hooks and helpers. */
function testAround(use: ts.Node, declaration: ts.Node): ts.Node | undefined {
  const scope = declaration.parent.parent.parent;
  let found: ts.Node | undefined;
  for (let node = use.parent; node && node !== scope; node = node.parent)
    if (
      ts.isCallExpression(node) &&
      /^(test\w*|it|\w+\.test)(\.skip|\.only)?$/.test(node.expression.getText())
    )
      found = node;
  return found;
}

function accessOf(node: ts.Identifier): { isSet: boolean; isRead: boolean } {
  const { parent } = node;
  if (ts.isBinaryExpression(parent) && parent.left === node) {
    const { kind } = parent.operatorToken;
    if (kind === ts.SyntaxKind.EqualsToken) return { isSet: true, isRead: false };
    if (kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment)
      return { isSet: true, isRead: true };
  }
  const isStep =
    ts.isPostfixUnaryExpression(parent) ||
    (ts.isPrefixUnaryExpression(parent) &&
      parent.operator !== ts.SyntaxKind.ExclamationToken &&
      parent.operator !== ts.SyntaxKind.MinusToken);
  return { isSet: isStep, isRead: true };
}
