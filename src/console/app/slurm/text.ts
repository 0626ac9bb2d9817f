/** A Slurm configuration as the YAML that people edit (the one that `andromeda slurm-config get` prints), and back. */
import { Document, isMap, isScalar, LineCounter, parseDocument, Scalar, visit } from 'yaml';
import type { components } from '../../../api/generated/platform.ts';
import { escapeControls } from '../../../domain/text.ts';

export type Configuration = components['schemas']['SlurmConfiguration'];

export function formatConfiguration(configuration: Configuration): string {
  if (Object.keys(configuration).length === 0) return '';
  const document = new Document(configuration, { aliasDuplicateObjects: false });
  visit(document, {
    // Only there an escape says what it stands for.
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && node.value !== escapeControls(node.value))
        node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return escapeControls(document.toString({ lineWidth: 0 }));
}

/**
 * What a text says, `undefined` where it is no YAML. Whether that is a configuration, the server says. `lineOf`: the line in which a
 * field or one of its files is named; the first one for what is not named.
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
  const faults = document.errors.map(({ pos, message }) => ({ line: lineAt(pos[0]), message }));
  const configuration = faults.length > 0 ? undefined : jsonOf(document);
  return { configuration, faults, lineOf };
}

/** An alias is no text: what it stands for can be large, and be there any number of times. */
function jsonOf(document: Document.Parsed): Configuration {
  try {
    return document.toJS({ maxAliasCount: 0 }) ?? {};
  } catch {
    return [] as Configuration;
  }
}
