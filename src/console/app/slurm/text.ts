/** A Slurm configuration as the YAML that people edit (the one that `andromeda slurm-config get` prints), and back. */
import { Document, isAlias, isMap, isScalar, type Pair, parseDocument, Scalar, visit } from 'yaml';
import type { components } from '../../../api/generated/platform.ts';
import { escapeControls } from '../../../domain/visible-text.ts';

export type Configuration = components['schemas']['SlurmConfiguration'];
type Field = keyof Configuration;

const isOfFiles: Record<Field, boolean> = {
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

/** Something wrong at a place of the text. */
export interface Fault {
  from: number;
  to: number;
  message: string;
}

export interface Parsed {
  /** Undefined where the text says none. */
  configuration: Configuration | undefined;
  faults: Fault[];
  /** Where a field or one of its files is named. */
  rangeFor(field?: string, file?: string): { from: number; to: number };
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
  const document = parseDocument(text, { prettyErrors: false });
  const faults: Fault[] = document.errors.map(({ pos, message }) => ({
    from: pos[0],
    to: pos[1],
    message: `${message.split('\n')[0]}${/[.:]$/.test(message) ? '' : '.'}`,
  }));
  const ranges = new Map<string, { from: number; to: number }>();
  const rangeFor: Parsed['rangeFor'] = (field = '', file = '') =>
    ranges.get(keyOf(field, file)) ?? ranges.get(keyOf(field, '')) ?? { from: 0, to: 0 };
  const note = (node: unknown, message: string) => faults.push({ ...rangeOf(node), message });
  const values: [string, string | Record<string, string>][] = [];
  const { contents } = document;
  if (isMap(contents)) {
    for (const pair of contents.items) {
      const field = nameOf(pair);
      ranges.set(keyOf(field, ''), rangeOf(pair.key));
      if (!Object.hasOwn(isOfFiles, field)) {
        note(
          pair.key,
          `There is no field ${JSON.stringify(field)}; there are ${Object.keys(isOfFiles).join(', ')}.`,
        );
      } else if (!isOfFiles[field as Field]) {
        const value = textOf(pair);
        if (value === undefined)
          note(pair.value ?? pair.key, `${field} is text; leave the line out to clear it.`);
        else values.push([field, value]);
      } else if (!isMap(pair.value)) {
        note(pair.value ?? pair.key, `${field} has files: their names, each with its text.`);
      } else {
        const files: [string, string][] = [];
        for (const inner of pair.value.items) {
          const file = nameOf(inner);
          ranges.set(keyOf(field, file), rangeOf(inner.key));
          const value = textOf(inner);
          if (value === undefined)
            note(inner.value ?? inner.key, `The file ${JSON.stringify(file)} is text.`);
          else files.push([file, value]);
        }
        values.push([field, Object.fromEntries(files)]);
      }
    }
  } else if (contents !== null && !(isScalar(contents) && contents.value === null) && faults.length === 0) {
    note(contents, 'This is not a map of fields and their values.');
  }
  const configuration = faults.length === 0 ? (Object.fromEntries(values) as Configuration) : undefined;
  return { configuration, faults: faults.slice(0, mostFaults), rangeFor };
}

function keyOf(field: string, file: string): string {
  return JSON.stringify([field, file]);
}

function nameOf({ key }: Pair<unknown, unknown>): string {
  return isScalar(key) ? String(key.value) : '';
}

/** Undefined for what is no text. An alias is none: what it stands for can be anything, and large. */
function textOf({ value }: Pair<unknown, unknown>): string | undefined {
  if (isAlias(value) || !isScalar(value)) return undefined;
  return typeof value.value === 'string' ? value.value : undefined;
}

function rangeOf(node: unknown): { from: number; to: number } {
  const [from = 0, to = from] = (node as { range?: [number, number, number] } | null)?.range ?? [];
  return { from, to };
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

function partsOf(configuration: Configuration): Map<string, string> {
  const parts = new Map<string, string>();
  for (const [field, value] of Object.entries(configuration)) {
    if (typeof value === 'string') parts.set(keyOf(field, ''), value);
    else for (const [file, text] of Object.entries(value)) parts.set(keyOf(field, file), text);
  }
  return parts;
}

function fromParts(parts: ReadonlyMap<string, string>): Configuration {
  const fields = new Map<string, string | Record<string, string>>();
  for (const [key, text] of parts) {
    const [field, file] = JSON.parse(key) as [string, string];
    if (!isOfFiles[field as Field]) fields.set(field, text);
    else fields.set(field, { ...(fields.get(field) as Record<string, string>), [file]: text });
  }
  return Object.fromEntries(fields) as Configuration;
}
