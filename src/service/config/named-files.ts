/** Files that settings name: where they are, and what is in them. Refusals are sentences that name the setting. */
import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DomainError } from '../../domain/error.ts';

/** The files of one configuration. */
export interface NamedFiles {
  /** Makes a path absolute. */
  at(path: string): string;
  /** Reads a file that a setting names. Throws `invalid_request`. */
  read(name: string, path: string): Buffer;
  /** As `read`, and refuses a file that others can read. */
  readSecret(name: string, path: string): Buffer;
}

/** `file`: the configuration's own, to which paths are relative. */
export function namedFiles(file: string): NamedFiles {
  return {
    at: (path) => resolve(dirname(resolve(file)), path),
    read: (name, path) => readFile(file, name, path),
    readSecret(name, path) {
      const content = readFile(file, name, path);
      if ((statSync(path).mode & 0o077) !== 0)
        throw invalid(file, `${name}: ${path} can be read or written by others. chmod 600 ${path}`);
      return content;
    },
  };
}

export function readFile(file: string, name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw invalid(file, `${name}: cannot read ${path} (${(error as NodeJS.ErrnoException).code}).`);
  }
}

export function invalid(file: string, message: string): DomainError {
  return new DomainError('invalid_request', `${file}: ${message}`);
}
