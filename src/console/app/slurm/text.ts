/** Converts a Slurm configuration to the YAML that people edit (as `andromeda slurm-config get` prints it), and back. */
import { Document, isMap, isScalar, LineCounter, parseDocument, Scalar, visit } from 'yaml';
import type { components } from '../../../api/generated/platform.ts';
import { escapeControls } from '../../../domain/text.ts';

export type Configuration = components['schemas']['SlurmConfiguration'];

export function formatConfiguration(configuration: Configuration): string {
  if (Object.keys(configuration).length === 0) return '';
  const document = new Document(configuration, { aliasDuplicateObjects: false });
  visit(document, {
    // Escapes are only interpreted between double quotes.
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && node.value !== escapeControls(node.value))
        node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return escapeControls(document.toString({ lineWidth: 0 }));
}

/**
 * Parses a text; `configuration` is undefined where it is not YAML. Only the server checks fields. `lineOf` returns the line
 * that names a field or one of its files; the first line where none does.
 */
export function parseConfiguration(text: string) {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const lineAt = (offset = 0) => Math.max(1, lines.linePos(offset).line);
  const keyIn = (map: unknown, name?: string) =>
    (isMap(map) ? map.items : [])
      .map(({ key }) => key)
      .find((key) => isScalar(key) && `${key.value}` === name);
  const lineOf = (field?: string, file?: string) => {
    const key = keyIn(document.get(field, true), file) ?? keyIn(document.contents, field);
    return lineAt(isScalar(key) ? key.range?.[0] : 0);
  };
  const faults = document.errors.map(({ pos, code, message }) => ({
    line: lineAt(pos[0]),
    message: code === 'MULTIPLE_DOCS' ? 'A second document begins here (---). Take it out.' : message,
  }));
  const configuration = faults.length > 0 ? undefined : jsonOf(document);
  return { configuration, faults, lineOf };
}

/** Allows no aliases: they could multiply a large value without limit. */
function jsonOf(document: Document.Parsed): Configuration {
  try {
    return document.toJS({ maxAliasCount: 0 }) ?? {};
  } catch {
    return [] as Configuration;
  }
}
