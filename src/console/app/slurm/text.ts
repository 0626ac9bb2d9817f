/** A Slurm configuration as the YAML that people edit (the one that `andromeda slurm-config get` prints), and back. */
import { Document, isMap, isScalar, LineCounter, parseDocument, Scalar, visit } from 'yaml';
import type { components } from '../../../api/generated/platform.ts';
import { escapeControls } from '../../../domain/text.ts';

export type Configuration = components['schemas']['SlurmConfiguration'];

const isOfFiles: Record<keyof Configuration, boolean> = {
  slurmPartitions: false,
  slurmExtraConfig: false,
  cgroupExtraConfig: false,
  gresConf: false,
  prolog: true,
  epilog: true,
  controllerEtc: true,
  loginS6Packages: false,
  computeS6Packages: false,
};

/** Something wrong in a line of the text. */
export interface Fault {
  line: number;
  message: string;
}

export interface Parsed {
  /** Undefined where the text says none. */
  configuration: Configuration | undefined;
  faults: Fault[];
  /** Where a field or one of its files is named; the first line for what is not. */
  lineOf(field?: string, file?: string): number;
}

const mostFaults = 50;

/** The text of a configuration; empty for one in which nothing is set. */
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

export function parseConfiguration(text: string): Parsed {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const lineAt = (offset = 0) => Math.max(1, lines.linePos(offset).line);
  const lineOf: Parsed['lineOf'] = (field, file) => {
    const key = keyIn(document.contents, field);
    const inner = file === undefined ? undefined : keyIn(document.get(field, true), file);
    return lineAt((inner ?? key)?.range?.[0]);
  };
  const faults = document.errors.map(({ pos, message }) => ({
    line: lineAt(pos[0]),
    message: `${message.split('\n')[0]}${/[.:]$/.test(message) ? '' : '.'}`,
  }));
  if (faults.length > 0) return { configuration: undefined, faults: faults.slice(0, mostFaults), lineOf };
  const value: unknown = jsonOf(document);
  const found = faultsOf(value).map(({ field, file, message }) => ({ line: lineOf(field, file), message }));
  const configuration = found.length === 0 ? ((value ?? {}) as Configuration) : undefined;
  return { configuration, faults: found.slice(0, mostFaults), lineOf };
}

function keyIn(map: unknown, name: string | undefined): Scalar | undefined {
  const keys = isMap(map) ? map.items.map(({ key }) => key).filter(isScalar) : [];
  return keys.find(({ value }) => String(value) === name);
}

/** An alias is no text: what it stands for can be large, and be there any number of times. */
function jsonOf(document: Document.Parsed): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch {
    return [];
  }
}

const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What makes a value no configuration; which of those are taken, the server says. */
function faultsOf(value: unknown): { field?: string; file?: string; message: string }[] {
  if (value === null || value === undefined) return [];
  if (!isTable(value)) return [{ message: 'This is not a map of fields and their values.' }];
  return Object.entries(value).flatMap(([field, given]) => {
    if (!Object.hasOwn(isOfFiles, field)) {
      const all = Object.keys(isOfFiles).join(', ');
      return [{ field, message: `There is no field ${JSON.stringify(field)}; there are ${all}.` }];
    }
    if (!isOfFiles[field as keyof Configuration]) {
      const message = `${field} is text; leave the line out to clear it.`;
      return typeof given === 'string' ? [] : [{ field, message }];
    }
    if (!isTable(given)) return [{ field, message: `${field} has files: their names, each with its text.` }];
    return Object.entries(given)
      .filter(([, text]) => typeof text !== 'string')
      .map(([file]) => ({ field, file, message: `The file ${JSON.stringify(file)} is text.` }));
  });
}

/** What was changed on both sides of a common base; undefined where both changed the same part, each otherwise. */
export function mergeConfigurations(
  base: Configuration,
  theirs: Configuration,
  mine: Configuration,
): Configuration | undefined {
  const [before, other, own] = [partsOf(base), partsOf(theirs), partsOf(mine)];
  const merged = new Map(other);
  for (const key of new Set([...before.keys(), ...own.keys()])) {
    const [was, is, wanted] = [before.get(key), other.get(key), own.get(key)];
    if (wanted === was || wanted === is) continue;
    if (is !== was) return undefined;
    if (wanted === undefined) merged.delete(key);
    else merged.set(key, wanted);
  }
  return fromParts(merged);
}

/** Whether two say the same, in whatever order. */
export function isSame(one: Configuration, other: Configuration): boolean {
  const [own, others] = [partsOf(one), partsOf(other)];
  return own.size === others.size && [...own].every(([key, text]) => others.get(key) === text);
}

/** The texts by their field and, for those of files, `field/file`. */
function partsOf(configuration: Configuration): Map<string, string> {
  const parts = Object.entries(configuration).flatMap(([field, value]) =>
    typeof value === 'string'
      ? [[field, value] as const]
      : Object.entries(value).map(([file, text]) => [`${field}/${file}`, text] as const),
  );
  return new Map(parts);
}

function fromParts(parts: ReadonlyMap<string, string>): Configuration {
  const fields = new Map<string, string | Record<string, string>>();
  for (const [key, text] of parts) {
    const [field = '', ...file] = key.split('/');
    if (file.length === 0) fields.set(field, text);
    else fields.set(field, { ...(fields.get(field) as object), [file.join('/')]: text });
  }
  return Object.fromEntries(fields);
}
