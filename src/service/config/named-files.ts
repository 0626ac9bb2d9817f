/** Files that settings name, with their content. Refusals are sentences that begin with the setting. */

import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { fileReason } from '../../lib/error-message.ts';

export class NamedFiles {
  readonly file: string;

  constructor(file: string) {
    this.file = resolve(file);
  }

  at(path: string): string {
    return resolve(dirname(this.file), path);
  }

  read<Path extends string | undefined>(name: string, path: Path): Path extends string ? Buffer : undefined;
  read(name: string, path: string | undefined): Buffer | undefined {
    if (path === undefined) return undefined;
    try {
      return readFileSync(this.at(path));
    } catch (error) {
      throw invalid(`${name}: cannot read ${this.at(path)}: ${fileReason(error)}.`);
    }
  }

  /** Like `read`, but refuses a file that others can read. */
  readSecret(name: string, path: string): Buffer {
    const content = this.read(name, path);
    const file = this.at(path);
    if ((statSync(file).mode & 0o077) !== 0)
      throw invalid(`${name}: ${file} can be read or written by others. chmod 600 ${file}`);
    return content;
  }

  readSecretText(name: string, path: string): string {
    return this.readSecret(name, path).toString('utf8').trim();
  }
}

export function invalid(message: string): DomainError {
  return new DomainError('invalid_request', message);
}
