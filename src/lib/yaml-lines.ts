/** Reads YAML files, with line numbers for messages about their content. */
import { type Document, isAlias, isMap, isNode, isPair, isSeq, LineCounter, parseDocument } from 'yaml';

export function parseLines(file: string, text: string) {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const at = (offset: number | undefined) => `${file}:${lines.linePos(offset ?? 0).line}`;
  return { document, at };
}

/** The value of a document, or its first fault as `:line:column: sentence`. `isSecret`: its text must not be quoted. */
export function readValue(document: Document, isSecret = false): { value?: unknown; fault?: string } {
  const notYaml = (error: Error) =>
    `: not readable as YAML${isSecret ? '' : `: ${error.message.split(' at line')[0]}`}.`;
  const [error] = document.errors;
  if (!error) {
    try {
      return { value: document.toJS() };
    } catch (cause) {
      // Aliases that refer to each other, or too many of them.
      return { fault: notYaml(cause as Error) };
    }
  }
  const { line, col } = error.linePos?.[0] ?? { line: 1, col: 1 };
  const isSecond = error.code === 'MULTIPLE_DOCS';
  const sentence = ': a second document begins here (---). A file can have one: put it into another.';
  return { fault: `:${line}:${col}${isSecond ? sentence : notYaml(error)}` };
}

/** `file:line` of the node at a path, or of the deepest part of the path that exists; just the file where none does. */
export function lineOf(file: string, text: string, path: readonly (string | number)[]): string {
  const { document, at } = parseLines(file, text);
  const { depth, offset } = findPath(document, path.map(String));
  return depth === 0 ? file : at(offset);
}

/** The offset of the node at a path, with its key, or of the deepest part that exists; and the number of parts found. */
export function findPath(document: Document, path: readonly string[]): { depth: number; offset: number } {
  let node: unknown = document.contents;
  let offset = 0;
  let depth = 0;
  for (const part of path) {
    if (isAlias(node)) node = node.resolve(document);
    const found: unknown = isMap(node)
      ? node.items.find(({ key }) => String(key) === part)
      : isSeq(node) && node.items[Number(part)];
    const begin = isPair(found) ? found.key : found;
    if (!isNode(begin)) break;
    offset = begin.range?.[0] ?? offset;
    node = isPair(found) ? found.value : found;
    depth += 1;
  }
  return { depth, offset };
}
