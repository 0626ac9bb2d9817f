/** YAML files that people write, read with a sentence that names the line of an error. */
import { createReadStream } from 'node:fs';
import { escapeControls } from '../domain/visible-text.ts';
import { messageOf } from '../lib/error-message.ts';
import { failure } from './exit.ts';
import { isObject } from './net/request.ts';

/** Bytes. What a person writes is far smaller, and the APIs take far less. */
const maxInput = 16 * 2 ** 20;

/** What is in a file, `-` for standard input. Throws a sentence, also for what has no end. */
export async function readInput(file: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of file === '-' ? process.stdin : createReadStream(file)) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxInput) throw new Error(`it is larger than ${maxInput / 2 ** 20} MiB`);
    }
  } catch (error) {
    throw failure(`${file} cannot be read: ${reasonOf(error as NodeJS.ErrnoException)}.`, error);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** A YAML file's map of keys and values, `-` for standard input. Throws a sentence with file, line and column. */
export async function readYaml(file: string): Promise<Record<string, unknown>> {
  return parseYaml(await readInput(file), file);
}

/** The same of a text; `file` is how to call it. */
export async function parseYaml(text: string, file: string): Promise<Record<string, unknown>> {
  const { parseDocument } = await import('yaml');
  const document = parseDocument(text);
  const [problem] = document.errors;
  if (problem) {
    const { line, col } = problem.linePos?.[0] ?? { line: 1, col: 1 };
    throw failure(`${file}:${line}:${col}: ${problem.message.split(' at line')[0]}.`);
  }
  const value = toValue(file, document) ?? {};
  if (!isObject(value)) throw failure(`${file}: this is not a map of keys and values.`);
  return value;
}

/** A value as YAML, as people would write it. */
export async function formatYaml(value: unknown): Promise<string> {
  const { Document, Scalar, visit } = await import('yaml');
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    // Only there an escape says what it stands for.
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && node.value !== escapeControls(node.value))
        node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return escapeControls(document.toString({ lineWidth: 0 })).trimEnd();
}

function toValue(file: string, document: { toJS(): unknown }): unknown {
  try {
    return document.toJS();
  } catch (error) {
    // Aliases that name each other, or too many of them.
    throw failure(`${file}: ${messageOf(error)}.`, error);
  }
}

/** Why a file cannot be read or written, as a clause. */
export function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  const reasons: Record<string, string> = {
    ENOENT: 'there is no such file',
    EISDIR: 'it is a directory',
    EACCES: 'you may not',
  };
  return reasons[code ?? ''] ?? code ?? message;
}
