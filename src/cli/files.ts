/**
 * Files: reads people's YAML, with errors that name the line; and replaces files atomically: a reader sees the old or the new
 * content, never a part, also after a crash.
 */

import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, realpath, rename, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { escapeControls } from '../domain/text.ts';
import { commandIo } from '../lib/command-io.ts';
import { fileReason } from '../lib/error-message.ts';
import { failure } from './exit.ts';
import { isObject } from './net/request.ts';

/** Bytes, far more than people write and than the APIs accept. */
const maxInput = 16 * 2 ** 20;

/** Reads a file; `-` is standard input. Throws a message, also for input without an end. */
export async function readInput(file: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of file === '-' ? commandIo().stdin : createReadStream(file)) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxInput) throw new Error(`it is larger than ${maxInput / 2 ** 20} MiB`);
    }
  } catch (error) {
    throw failure(`${file} cannot be read: ${fileReason(error)}.`, error);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Reads a map of keys and values from YAML; `-` is standard input. Throws a message with file, line and column. */
export async function readYaml(file: string): Promise<Record<string, unknown>> {
  return parseYaml(await readInput(file), file);
}

export async function parseYaml(text: string, file: string): Promise<Record<string, unknown>> {
  const { parseLines, readValue } = await import('../lib/yaml-lines.ts');
  const { value, fault } = readValue(parseLines(file, text).document);
  if (fault) throw failure(`${file}${fault}`);
  if (!isObject(value ?? {})) throw failure(`${file}: this is not a map of keys and values.`);
  return (value ?? {}) as Record<string, unknown>;
}

export async function formatYaml(value: unknown): Promise<string> {
  const { Document, Scalar, visit } = await import('yaml');
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    // Escapes have a meaning only in double quotes.
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && node.value !== escapeControls(node.value))
        node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return escapeControls(document.toString({ lineWidth: 0 })).trimEnd();
}

/**
 * Writes `text` to `path`, readable only by its owner. If `path` is a link, its target is replaced. Throws `failed` with the
 * reason.
 */
export async function writeAtomically(path: string, text: string, failed: string): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const temporary = `${target}.${randomUUID()}.tmp`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await replace(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw failure(`${failed}: ${fileReason(error)}.`, error);
  }
}

/** Retries on Windows, where a file that another process has open cannot be replaced. */
async function replace(temporary: string, target: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await rename(temporary, target);
    } catch (error) {
      if (attempt === 10 || !isHeldOnWindows(error)) throw error;
      await sleep(20 * attempt);
    }
  }
}

/** Whether Windows refused because another process has the file open, or has only just deleted it. */
export function isHeldOnWindows(error: unknown, platform: NodeJS.Platform = process.platform): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return platform === 'win32' && ['EPERM', 'EACCES', 'EBUSY'].includes(code);
}
