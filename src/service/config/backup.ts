/** The `backup` section of the configuration: backups that the service makes by itself. */
import { durationMs } from '../../domain/units.ts';
import { isLoopback } from '../../lib/loopback.ts';
import { invalid, type NamedFiles } from './named-files.ts';
import { file, integer, list, pattern, type Schema, section, text, type Value } from './schema.ts';
import { leadsInto } from './secret-files.ts';
import { withoutSecrets } from './settings-faults.ts';

const recipient = pattern(
  '^age1[a-z0-9]{10,4000}$',
  'a public key of age (age1…; not of SSH: make one with `age-keygen -o key.txt` and keep key.txt on another machine), or a list of them',
);
const recipients: Schema<string | string[]> = {
  anyOf: [recipient, list(recipient, { minItems: 1, maxItems: 20 })],
};

export const backupSchema = section(
  {
    every: pattern('^[1-9]\\d{0,3}[mhd]$', 'a number and m, h or d, as 24h'),
    keep: integer(1, 1000),
    to: text,
    encryptTo: recipients,
    s3: section({ endpoint: text, region: text, credentials: file, ca: file }, ['endpoint', 'credentials']),
  },
  ['to'],
);

/** The section as `service/backup` takes it. */
export type BackupSettings = ReturnType<typeof readBackup>;

/** The section, which fits the schema. Throws `invalid_request`. */
export function readBackup(
  raw: Value<typeof backupSchema>,
  { files, dataDir }: { files: NamedFiles; dataDir: string },
) {
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
    const directory = files.at(to);
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
      endpoint: endpointOf(s3.endpoint),
      region: s3.region ?? 'us-east-1',
      credentials: files.at(s3.credentials),
      ca: s3.ca === undefined ? undefined : files.at(s3.ca),
    },
  };
}

function endpointOf(text: string): string {
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
