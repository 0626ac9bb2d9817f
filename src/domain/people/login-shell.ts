/** The login shell that a person asks for (contract, `PUT /me/login-preferences`). */
import { DomainError } from '../error.ts';

const longest = 255;

/** The shell as asked for. Throws `invalid_request` when it cannot be one. */
export function parseLoginShell(shell: string): string {
  if (shell === '') throw invalid('The shell is empty.');
  if (!shell.startsWith('/')) throw invalid('The shell must be an absolute path, such as /bin/bash.');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f]/.test(shell))
    throw invalid('The shell must not contain control characters.');
  // It becomes a field of /etc/passwd on the clusters, where a colon ends it.
  if (shell.includes(':')) throw invalid('The shell must not contain a colon.');
  if (shell.length > longest) throw invalid(`The shell is longer than ${longest} characters.`);
  const segments = shell.split('/').slice(1);
  if (segments.some((segment) => ['', '.', '..'].includes(segment))) {
    throw invalid('The shell must be the plain path of a program, such as /bin/bash.');
  }
  if (shell === '/usr/sbin/nologin') throw invalid('/usr/sbin/nologin would lock you out.');
  return shell;
}

function invalid(message: string): DomainError {
  return new DomainError('invalid_request', message);
}
