/**
 * Parses `postgres://user:password@h1:5432,h2/database?sslmode=verify-full`, as libpq's programs take it: the
 * supported parts, and an error sentence for others. No message here ever contains the password.
 */
import { DomainError } from '../domain/error.ts';

const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

type SslMode = (typeof sslModes)[number];

export interface PostgresTarget {
  /** Tried in this order; a host with a slash is the directory of a Unix socket. */
  hosts: { host: string; port: number }[];
  user: string | undefined;
  password: string | undefined;
  database: string;
  sslMode: SslMode;
  /** The file with the CAs for server certificates; `system`: the CAs that the operating system trusts. */
  sslRootCert: string | undefined;
  /** The schema of the tables; undefined: the server's default for this user. */
  schema: string | undefined;
}

const usualPort = 5432;
const most = 16;
const escapes =
  'In a user or a password, write @ as %40, / as %2F, # as %23, ? as %3F and % as %25 (percent-encoding).';
const known = ['sslmode', 'sslrootcert', 'host', 'schema', 'application_name', 'target_session_attrs'];

/** Throws `invalid_request` with a sentence without any part of the password. */
export function parsePostgresUrl(url: string): PostgresTarget {
  const read = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(url);
  if (!read) throw invalid(`It is postgres://USER@HOST/DATABASE, with more hosts behind commas. ${escapes}`);
  const [, person = '', authority = '', database = '', query = ''] = read;
  const options = new URLSearchParams(query);
  const unknown = [...options.keys()].find((name) => !known.includes(name));
  // A part of the password would be parsed as a host, a database or an option, and be in messages.
  const parts = [authority, database, options.get('host') ?? '', unknown === undefined ? '' : query];
  if (parts.some((part) => part.includes('@'))) throw withAt();
  const colon = person.indexOf(':');
  if (unknown !== undefined) throw invalid(`It cannot have ?${unknown}=; it can have ${known.join(', ')}.`);
  if (database === '') throw invalid('It names no database: postgres://USER@HOST/DATABASE.');
  const sslMode = options.get('sslmode') ?? 'prefer';
  const isSslMode = (text: string): text is SslMode => (sslModes as readonly string[]).includes(text);
  if (!isSslMode(sslMode)) throw invalid(`Its sslmode can be ${sslModes.join(', ')}.`);
  const attributes = options.get('target_session_attrs') ?? 'read-write';
  if (!['read-write', 'primary'].includes(attributes))
    throw invalid('The service writes: leave target_session_attrs out.');
  return {
    hosts: hostsOf(options.get('host') ?? decoded(authority)),
    user: decoded(colon < 0 ? person : person.slice(0, colon)) || undefined,
    password: colon < 0 ? undefined : decoded(person.slice(colon + 1)),
    database: decoded(database),
    sslMode,
    sslRootCert: options.get('sslrootcert') ?? undefined,
    schema: options.get('schema') ?? undefined,
  };
}

export function describePostgres({ hosts, database }: PostgresTarget): string {
  return `${database} on ${hosts.map(addressOf).join(', ')}`;
}

export function addressOf({ host, port }: { host: string; port: number }): string {
  if (host.includes('/') || port === usualPort) return host;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function hostsOf(text: string): { host: string; port: number }[] {
  const hosts = text.split(',').map(hostOf);
  if (hosts.length > most) throw invalid(`It names more than ${most} hosts.`);
  return hosts;
}

function hostOf(text: string): { host: string; port: number } {
  const parts = /^(?:\[([0-9a-fA-F:.%]+)\]|(\/[^:]*|[^:[\]]*))(?::(\d{1,5}))?$/.exec(text);
  const host = parts?.[1] ?? parts?.[2];
  const port = Number(parts?.[3] ?? usualPort);
  if (host?.includes('@')) throw withAt();
  if (!host) throw invalid(`A host in it is missing, or cannot be read. ${escapes}`);
  if (port < 1 || port > 65_535) throw invalid(`There is no port ${port}.`);
  return { host, port };
}

function withAt(): DomainError {
  return invalid(`There is an @ where none can be. ${escapes}`);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid(`It has a % that is no escape. ${escapes}`);
  }
}

function invalid(sentence: string): DomainError {
  return new DomainError('invalid_request', `The URL of the database cannot be used. ${sentence}`);
}
