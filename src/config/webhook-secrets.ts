/** The file with which a webhook's messages are signed: one secret a line, as Standard Webhooks writes them. */
import { DomainError } from '../domain/error.ts';

const form = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/;
/** More than one only while one takes the place of the other. */
const most = 4;

/** The secrets of a file. Throws `invalid_request` with a sentence, which quotes nothing of it. */
export function readSecrets(name: string, path: string, content: Buffer): Buffer[] {
  const lines = content
    .toString('latin1')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const secrets = lines.map((line) => Buffer.from(form.exec(line)?.[1] ?? '', 'base64'));
  if (secrets.length === 0 || secrets.length > most || secrets.some(({ length }) => length < 24))
    throw new DomainError(
      'invalid_request',
      `${name}: ${path} must hold one secret a line, at most ${most}: "whsec_" and 24 to 64 bytes in base64. Make one with: (umask 077; echo "whsec_$(openssl rand -base64 32)" > ${path})`,
    );
  return secrets;
}
