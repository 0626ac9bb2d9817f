/** Line numbers of a YAML file, for messages about its content. */
import { type Document, isAlias, isMap, isNode, isPair, isSeq, LineCounter, parseDocument } from 'yaml';

export function parseLines(file: string, text: string) {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const at = (offset: number | undefined) => `${file}:${lines.linePos(offset ?? 0).line}`;
  return { document, at };
}

/** `:line:column: fault`, for the first fault of a document; undefined for none. `isSecret`: it must not be quoted. */
export function yamlFault(
  { errors: [fault] }: Pick<Document, 'errors'>,
  isSecret = false,
): string | undefined {
  if (!fault) return undefined;
  const { line, col } = fault.linePos?.[0] ?? { line: 1, col: 1 };
  const what = isSecret ? '' : `: ${fault.message.split(' at line')[0]}`;
  const sentence =
    fault.code === 'MULTIPLE_DOCS'
      ? 'a second document begins here (---), and a file can have one only. Make another file of it'
      : `not readable as YAML${what}`;
  return `:${line}:${col}: ${sentence}.`;
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
