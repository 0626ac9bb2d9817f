/** Reads a YAML file of settings against a JSON schema, with errors that a person can act on. */

import { readFileSync } from 'node:fs';
import { visit } from 'yaml';
import { DomainError } from '../../domain/error.ts';
import { storedText } from '../../domain/text.ts';
import { fileReason } from '../../lib/error-message.ts';
import { findPath, parseLines, readValue } from '../../lib/yaml-lines.ts';
import type { Schema } from './schema.ts';
import { listFaults } from './settings-faults.ts';

/**
 * The file's content, validated; durations are numbers of their setting's unit. Throws `invalid_request` with a line
 * for each fault: the file, the line in it, the setting and the fault. A schema's `form` describes the expected
 * format. Callers apply the defaults.
 */
export function readSettings<T>(file: string, schema: Schema<T>): T {
  const { document, at } = parseLines(file, readText(file));
  const { value, fault } = readValue(document);
  if (fault) throw new DomainError('invalid_request', `${file}${fault}`);
  visit(document, {
    Scalar(_key, { value, range }) {
      if (typeof value !== 'string' || storedText(value) === value) return;
      throw new DomainError(
        'invalid_request',
        `${at(range?.[0])}: this text has a NUL character (\\0) or half of a surrogate pair, which no text here can have.`,
      );
    },
  });
  // An editor that found the disk full leaves an empty file, which does not mean all defaults.
  if (document.contents === null)
    throw new DomainError(
      'invalid_request',
      `${file} has nothing in it; for every default, write {} into it.`,
    );
  const faults = listFaults(value, schema).map(({ path, sentence }) => {
    const { offset } = findPath(document, path);
    return { offset, text: `${at(offset)}: ${sentence}` };
  });
  if (faults.length === 0) return value as T;
  const inOrder = faults.sort((a, b) => a.offset - b.offset).map((fault) => fault.text);
  throw new DomainError('invalid_request', [...new Set(inOrder)].slice(0, 20).join('\n'));
}

export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new DomainError('invalid_request', `Cannot read ${file}: ${fileReason(error)}.`, { cause: error });
  }
}

/**
 * `file:line` of the setting that a sentence begins with, or of another that it names where that one is not in the
 * file; undefined where it begins with none.
 */
export function lineOfSentence(file: string, sentence: string): string | undefined {
  const { document, at } = parseLines(file, readText(file));
  const named = [...sentence.matchAll(/(?<=^|[\s`])[a-z]\w*(?:\.[a-z]\w*|\[\d+\])*/gi)]
    .filter(({ index, 0: name }) => index === 0 || name.includes('.'))
    .map(({ 0: name }) => name.replaceAll('[', '.').replaceAll(']', '').split('.'));
  const found = named.map((path) => ({ ...findPath(document, path), path }));
  const best = found.find(({ depth, path }) => depth === path.length) ?? found[0];
  return best === undefined || best.depth === 0 ? undefined : at(best.offset);
}
