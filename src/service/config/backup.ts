/** The `backup` section of the configuration: backups that the service makes by itself. */
import type { DomainError } from '../../domain/error.ts';
import { durationMs } from '../../domain/units.ts';
import { isLoopback } from '../../lib/loopback.ts';
import { leadsInto } from './secret-files.ts';
import { withoutSecrets } from './settings-faults.ts';

export interface BackupSettings {
  everyMs: number;
  /** So many are kept. */
  keep: number;
  /** `directory`: a path. `bucket`: S3-compatible storage. */
  to: { directory: string } | BackupBucket;
  /** Public keys of age; empty: it is not encrypted. */
  encryptTo: readonly string[];
}

interface BackupBucket {
  bucket: string;
  /** Before each name: empty, or ends with a slash. */
  prefix: string;
  endpoint: string;
  region: string;
  /** The file with the key. */
  credentials: string;
  /** Whom to trust over TLS, in PEM; undefined: the well-known authorities. */
  ca: string | undefined;
}

export interface RawBackup {
  every?: string;
  keep?: number;
  to: string;
  encryptTo?: string | string[];
  s3?: { endpoint: string; region?: string; credentials: string; ca?: string };
}

const text = { type: 'string', minLength: 1 };
const recipient = {
  type: 'string',
  form: 'a public key of age (age1…; not of SSH: make one with `age-keygen -o key.txt` and keep key.txt on another machine), or a list of them',
  pattern: '^age1[a-z0-9]{10,4000}$',
};

/** The JSON schema of the section. */
export const backupSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['to'],
  properties: {
    every: { type: 'string', form: 'a number and m, h or d, as 24h', pattern: '^[1-9]\\d{0,3}[mhd]$' },
    keep: { type: 'integer', minimum: 1, maximum: 1000 },
    to: text,
    encryptTo: { anyOf: [recipient, { type: 'array', items: recipient, minItems: 1, maxItems: 20 }] },
    s3: {
      type: 'object',
      additionalProperties: false,
      required: ['endpoint', 'credentials'],
      properties: { endpoint: text, region: text, credentials: text, ca: text },
    },
  },
};

/** The files that the section names, as they are written there. */
export function listBackupFiles({ s3 }: RawBackup): string[] {
  return s3 ? [s3.credentials, ...(s3.ca === undefined ? [] : [s3.ca])] : [];
}

/** The section, which fits the schema. `at` makes a path absolute, `invalid` makes the error of a sentence. */
export function readBackup(
  raw: RawBackup,
  { at, dataDir, invalid }: { at(path: string): string; dataDir: string; invalid(text: string): DomainError },
): BackupSettings {
  const { every = '24h', keep = 14, to, encryptTo = [], s3 } = raw;
  const settings = {
    everyMs: durationMs(every) ?? 86_400_000,
    keep,
    encryptTo: [encryptTo].flat(),
  };
  if (!to.startsWith('s3:')) {
    if (/^[a-z][\w+.-]*:/i.test(to))
      throw invalid(
        `backup.to is ${withoutSecrets(to)}; it must be a directory, or s3://BUCKET or s3://BUCKET/PREFIX.`,
      );
    if (s3)
      throw invalid('backup.s3 is there, and backup.to is a directory; it would be s3://BUCKET/PREFIX.');
    const directory = at(to);
    if (leadsInto(directory, dataDir))
      throw invalid(`backup.to is ${directory}, which is lost with the data directory; name another place.`);
    return { ...settings, to: { directory } };
  }
  if (!s3) throw invalid('backup.to is in S3, so backup.s3 has to say where: endpoint and credentials.');
  if (settings.encryptTo.length === 0)
    throw invalid(
      'backup.to is in S3, and whoever reads a backup can be anybody here. Give backup.encryptTo a public key of age.',
    );
  const [, bucket, prefix = ''] =
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[\w.=@+-]+)*)\/?$/.exec(to) ?? [];
  if (bucket === undefined)
    throw invalid(`backup.to is ${withoutSecrets(to)}; it must be s3://BUCKET or s3://BUCKET/PREFIX.`);
  return {
    ...settings,
    to: {
      bucket,
      prefix: prefix === '' ? '' : `${prefix.slice(1)}/`,
      endpoint: endpointOf(s3.endpoint, invalid),
      region: s3.region ?? 'us-east-1',
      credentials: at(s3.credentials),
      ca: s3.ca === undefined ? undefined : at(s3.ca),
    },
  };
}

function endpointOf(text: string, invalid: (text: string) => DomainError): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.pathname === '/' && url.search === '' && url.hash === '' && url.username === '';
  if (!url || !isPlain || !/^https?:$/.test(url.protocol))
    throw invalid(
      `backup.s3.endpoint is ${withoutSecrets(text)}; it must be as https://s3.example.org, without the bucket.`,
    );
  if (url.protocol === 'http:' && !isLoopback(url.hostname.replace(/^\[|\]$/g, '')))
    throw invalid('backup.s3.endpoint is http, and not on this machine. Give one with https.');
  return url.origin;
}
