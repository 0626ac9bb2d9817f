/** The accounts and groups of this host, whose numbers nobody else may have here. */
import { readFileSync } from 'node:fs';

/** The numbers of accounts and groups that the host's own files name; directories (LDAP) are not asked. */
export function listHostIds(): number[] {
  return ['/etc/passwd', '/etc/group'].flatMap((file) =>
    linesOf(file)
      .map((line) => Number(line.split(':')[2]))
      .filter((id) => Number.isInteger(id)),
  );
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}
