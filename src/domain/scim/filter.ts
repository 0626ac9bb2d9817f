/** Filters of SCIM (RFC 7644, section 3.4.2.2), bounded in length and depth. */
import { valueIn, valuesOf } from './attributes.ts';
import { badScim } from './error.ts';
import { readPath, type ScimPath } from './path.ts';

type Operator = 'eq' | 'ne' | 'co' | 'sw' | 'ew' | 'gt' | 'ge' | 'lt' | 'le' | 'pr';
type Literal = string | number | boolean | null;

export type Filter =
  | { kind: 'compare'; path: ScimPath; operator: Operator; value: Literal }
  | { kind: 'some'; path: ScimPath; filter: Filter }
  | { kind: 'and' | 'or'; parts: Filter[] }
  | { kind: 'not'; filter: Filter };

const mostLength = 2_000;
const mostDepth = 20;
const tokenPattern = /\s*(?:([()[\]])|("(?:[^"\\]|\\.)*")|([^\s()[\]"]+))/y;
const operators: ReadonlySet<string> = new Set(['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le', 'pr']);

/** Reads a filter. Throws `invalidFilter`. */
export function readFilter(text: string): Filter {
  if (text.length > mostLength) throw fault(`is longer than ${mostLength} characters`);
  const tokens = tokensOf(text.trim());
  const parser = { tokens, at: 0, depth: 0 };
  const filter = readOr(parser);
  if (parser.at < tokens.length) throw fault(`has something behind its end: ${tokens[parser.at]}`);
  return filter;
}

function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  tokenPattern.lastIndex = 0;
  while (tokenPattern.lastIndex < text.length) {
    const from = tokenPattern.lastIndex;
    const found = tokenPattern.exec(text);
    if (!found) throw fault(`cannot be read from character ${from + 1} on`);
    tokens.push(found[1] ?? found[2] ?? found[3] ?? '');
  }
  return tokens;
}

interface Parser {
  tokens: string[];
  at: number;
  depth: number;
}

const isNext = (parser: Parser, word: string) => parser.tokens[parser.at]?.toLowerCase() === word;

function take(parser: Parser, word: string): void {
  if (!isNext(parser, word)) throw fault(`lacks “${word}”`);
  parser.at += 1;
}

function readOr(parser: Parser): Filter {
  return readParts(parser, 'or', () => readParts(parser, 'and', () => readOne(parser)));
}

function readParts(parser: Parser, kind: 'and' | 'or', read: () => Filter): Filter {
  const first = read();
  const parts = [first];
  while (isNext(parser, kind)) {
    parser.at += 1;
    parts.push(read());
  }
  return parts.length === 1 ? first : { kind, parts };
}

function readOne(parser: Parser): Filter {
  if (isNext(parser, 'not')) {
    parser.at += 1;
    return { kind: 'not', filter: readWithin(parser, '(', ')') };
  }
  if (isNext(parser, '(')) return readWithin(parser, '(', ')');
  const path = readPath(parser.tokens[parser.at++] ?? '', 'invalidFilter');
  if (isNext(parser, '[')) return { kind: 'some', path, filter: readWithin(parser, '[', ']') };
  const operator = (parser.tokens[parser.at++] ?? '').toLowerCase();
  if (!operators.has(operator)) throw fault(`has no operator “${operator}”`);
  if (operator === 'pr') return { kind: 'compare', path, operator, value: null };
  const value = literalOf(parser.tokens[parser.at++]);
  if (/^[gl]/.test(operator) && (value === null || typeof value === 'boolean')) {
    throw fault(`compares ${value} by size`);
  }
  return { kind: 'compare', path, operator: operator as Operator, value };
}

function readWithin(parser: Parser, open: string, close: string): Filter {
  if (++parser.depth > mostDepth) throw fault(`is nested more than ${mostDepth} deep`);
  take(parser, open);
  const filter = readOr(parser);
  take(parser, close);
  parser.depth -= 1;
  return filter;
}

function literalOf(token: string | undefined): Literal {
  // Entra writes booleans as Python does.
  const text = token !== undefined && /^(true|false|null)$/i.test(token) ? token.toLowerCase() : token;
  try {
    return JSON.parse(text ?? '') as Literal;
  } catch {
    throw fault('compares with what is neither a text in quotes nor a number, true, false or null');
  }
}

/** Whether a resource, or a value of an attribute, is one that the filter finds. */
export function matches(filter: Filter, resource: unknown): boolean {
  switch (filter.kind) {
    case 'and':
      return filter.parts.every((part) => matches(part, resource));
    case 'or':
      return filter.parts.some((part) => matches(part, resource));
    case 'not':
      return !matches(filter.filter, resource);
    case 'some':
      return valuesOf(found(filter.path, resource)).some((value) => matches(filter.filter, value));
    case 'compare':
      return compares(filter, valuesAt(filter.path, resource));
  }
}

/** The attribute's own value, whose sub-attribute is not looked at yet. */
function found({ schema, name }: ScimPath, resource: unknown): unknown {
  return valueIn(schema === undefined ? resource : valueIn(resource, schema), name);
}

function valuesAt(path: ScimPath, resource: unknown): unknown[] {
  const { name, sub } = path;
  const own = path.schema === undefined && typeof resource !== 'object' && name === 'value';
  const values = own ? [resource] : valuesOf(found(path, resource));
  // Without a sub-attribute, that of a complex value is its `value`.
  return values.flatMap((value) =>
    sub !== undefined
      ? valuesOf(valueIn(value, sub))
      : typeof value === 'object'
        ? valuesOf(valueIn(value, 'value') ?? value)
        : [value],
  );
}

function compares(filter: Extract<Filter, { kind: 'compare' }>, values: readonly unknown[]): boolean {
  const { path, operator, value } = filter;
  if (operator === 'pr') return values.some((one) => one !== '');
  if (operator === 'ne') return !compares({ ...filter, operator: 'eq' }, values);
  if (value === null) return operator === 'eq' && values.length === 0;
  const isExact = ['id', 'externalid'].includes((path.sub ?? path.name).toLowerCase());
  const folded = (one: unknown) => (typeof one === 'string' && !isExact ? one.toLowerCase() : one);
  return values.some((one) => holds(operator, folded(one), folded(value)));
}

function holds(operator: Operator, one: unknown, value: unknown): boolean {
  if (operator === 'eq') {
    if (typeof value === 'string' && typeof one === 'boolean') return String(one) === value;
    return one === value;
  }
  if (typeof one === 'string' && typeof value === 'string') {
    if (operator === 'co') return one.includes(value);
    if (operator === 'sw') return one.startsWith(value);
    if (operator === 'ew') return one.endsWith(value);
  } else if (typeof one !== 'number' || typeof value !== 'number') return false;
  if (operator === 'gt') return one > value;
  if (operator === 'ge') return one >= value;
  if (operator === 'lt') return one < value;
  return operator === 'le' && one <= value;
}

/** The value of an attribute that the filter alone asks for, so that an index can find it. */
export function wantedBy(filter: Filter, name: string): string | undefined {
  if (filter.kind !== 'compare' || filter.operator !== 'eq' || typeof filter.value !== 'string')
    return undefined;
  const { path } = filter;
  const isIt =
    path.name.toLowerCase() === name.toLowerCase() && path.sub === undefined && path.schema === undefined;
  return isIt ? filter.value : undefined;
}

function fault(what: string) {
  return badScim('invalidFilter', `The filter ${what}.`);
}
