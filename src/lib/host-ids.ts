/** The accounts and groups of this host, whose numbers nobody else may have here. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** The numbers of accounts and groups that the host's own files name; directories (LDAP) are not queried. */
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

/** How many numbers go into one query: an argument list has its limits. */
const batchSize = 1000;

/**
 * Whose the numbers are that others have on this host already, directories included: `the account NAME`. An account of
 * the same name that Andromeda made here for a Slurm cluster is the same person's.
 */
export function findHostOwners(accounts: readonly HostAccount[]): Promise<Map<number, string>> {
  const query = JSON.stringify(accounts.map(({ username, uid, gid }) => [username, uid, gid]));
  // The clusters of an organization all ask the same at the same time.
  if (latest?.query !== query || performance.now() - latest.at > answerLastsMs) {
    latest = { query, at: performance.now(), answer: askHost(accounts) };
  }
  return latest.answer;
}

interface HostAccount {
  username: string;
  uid: number;
  gid: number;
}

const answerLastsMs = 5_000;
let latest: { query: string; at: number; answer: Promise<Map<number, string>> } | undefined;

async function askHost(accounts: readonly HostAccount[]): Promise<Map<number, string>> {
  const owners = new Map<number, string>();
  for (let from = 0; from < accounts.length; from += batchSize) {
    const some = accounts.slice(from, from + batchSize);
    const names = new Map(
      some.flatMap(({ username, uid, gid }) => [[uid, username] as const, [gid, username]]),
    );
    const passwd = await getent('passwd', [...new Set(some.map(({ uid }) => uid))]);
    const group = await getent('group', [...new Set(some.map(({ gid }) => gid))]);
    for (const [name = '', , id, , comment] of passwd) {
      const isOurs = comment === 'Andromeda' && names.get(Number(id)) === name;
      if (!isOurs) owners.set(Number(id), `the account ${name}`);
    }
    for (const [name = '', , id] of group) {
      if (names.get(Number(id)) === name || owners.has(Number(id))) continue;
      owners.set(Number(id), `the group ${name}`);
    }
  }
  return owners;
}

/** Throws nothing: where there is no getent, the host's own files must do. */
function getent(database: 'passwd' | 'group', ids: readonly number[]): Promise<string[][]> {
  const options = { timeout: 10_000, maxBuffer: 16 * 2 ** 20 };
  return new Promise((resolve) => {
    execFile('getent', [database, ...ids.map(String)], options, (error, stdout) => {
      const isAnswer = error === null || error.code === 2;
      const lines = isAnswer ? stdout.split('\n') : linesOf(`/etc/${database}`);
      const wanted = new Set(ids);
      resolve(lines.map((line) => line.split(':')).filter((fields) => wanted.has(Number(fields[2] || NaN))));
    });
  });
}
