/** Signatures by an SSH key: whoever has OpenSSH can check them. */
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';

/** What such a signature is for: one of another purpose does not count. */
export const namespace = 'andromeda-release';

/** Signs a file with the key in `key`, private, or public where an agent has the other half. Returns the signature's file. */
export function signFile(file: string, key: string): string {
  rmSync(`${file}.sig`, { force: true });
  execFileSync('ssh-keygen', ['-Y', 'sign', '-f', key, '-n', namespace, file], {
    // It may ask for a passphrase.
    stdio: ['inherit', 'ignore', 'inherit'],
  });
  return `${file}.sig`;
}
