/** The `audit` section of the configuration: how often the trail is signed, and where it is sent. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import { invalid, type NamedFiles } from './named-files.ts';
import { duration, file, list, pattern, section, text, type Value } from './schema.ts';
import { leadsInto } from './secret-files.ts';

const port = '[1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5]';
const address = new RegExp(`^(udp|tcp|tls)://(?:\\[([0-9a-fA-F:.]+)\\]|([^:[\\]/\\s]+)):(${port})$`);
const timeoutSeconds = duration('seconds', 1, 300);
const defaultSeconds = 30;

const syslogSchema = section(
  {
    to: pattern(address.source, 'as tls://logs.example.org:6514, with udp, tcp or tls and a port'),
    ca: file,
    cert: file,
    key: file,
    timeoutSeconds,
  },
  ['to'],
);

const webhookSchema = section(
  {
    // What crosses a network crosses it encrypted; a name and password in an address end in logs.
    to: pattern(
      '^(https://[^/?#@\\s]+|http://(127\\.0\\.0\\.1|localhost|\\[::1\\])(:\\d+)?)([/?][^#\\s]*)?$',
      'as https://collector.example.org/audit (http only to this machine), without user and password',
    ),
    secretFile: file,
    ca: file,
    skip: list<number>({ type: 'integer', minimum: 1 }, { maxItems: 1000 }),
    timeoutSeconds,
  },
  ['to', 'secretFile'],
);

export const auditSchema = section({
  signSeconds: duration('seconds', 1, 86_400),
  file: text,
  syslog: { ...syslogSchema, dependencies: { cert: ['key'], key: ['cert'] } } as typeof syslogSchema,
  webhook: webhookSchema,
});

/** The section, which fits the schema: what `service/audit` is started with. */
export type AuditSettings = ReturnType<typeof readAudit>;

export function readAudit(given: Value<typeof auditSchema> | undefined, files: NamedFiles) {
  const { signSeconds = 60, file, syslog, webhook } = given ?? {};
  return {
    signMs: signSeconds * 1000,
    file: file === undefined ? undefined : files.at(file),
    syslog: syslog && readSyslog(syslog, files),
    webhook: webhook && readWebhook(webhook, files),
  };
}

function readSyslog(
  { to, ca, cert, key, timeoutSeconds = defaultSeconds }: Value<typeof syslogSchema>,
  files: NamedFiles,
) {
  const [, protocol, bracketed, plain = '', port] = address.exec(to) ?? [];
  return {
    protocol: protocol as 'udp' | 'tcp' | 'tls',
    host: bracketed ?? plain,
    port: Number(port),
    ca: files.read('audit.syslog.ca', ca),
    client:
      cert === undefined || key === undefined
        ? undefined
        : { cert: files.read('audit.syslog.cert', cert), key: files.readSecret('audit.syslog.key', key) },
    timeoutMs: timeoutSeconds * 1000,
  };
}

function readWebhook(
  { to, secretFile, ca, skip = [], timeoutSeconds = defaultSeconds }: Value<typeof webhookSchema>,
  files: NamedFiles,
) {
  return {
    url: new URL(to),
    secrets: readSecrets('audit.webhook.secretFile', secretFile, files),
    ca: files.read('audit.webhook.ca', ca),
    skip: new Set(skip),
    timeoutMs: timeoutSeconds * 1000,
  };
}

const secretForm = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/;
/** More than one only while one takes the place of the other. */
const mostSecrets = 4;

/** Throws `invalid_request` with a sentence, which quotes nothing of the file. */
function readSecrets(name: string, path: string, files: NamedFiles): Buffer[] {
  const lines = files.readSecretLines(name, path);
  const secrets = lines.map((line) => Buffer.from(secretForm.exec(line)?.[1] ?? '', 'base64'));
  if (secrets.length === 0 || secrets.length > mostSecrets || secrets.some(({ length }) => length < 24))
    throw invalid(
      `${name}: ${files.at(path)} must hold one secret a line, at most ${mostSecrets}: "whsec_" and 24 to 64 bytes in base64. Make one with: (umask 077; echo "whsec_$(openssl rand -base64 32)" > ${files.at(path)})`,
    );
  return secrets;
}

/** No file of the service's own ends so. */
const logName = /\.(jsonl|log)$/;

/** Nothing is written for others between the service's own files: lines that are appended to the database destroy it. Throws `invalid_request`. */
export function refuseOutputInDataDir({
  dataDir,
  audit: { file },
  retention: { exportTo },
}: {
  dataDir: string;
  audit: Pick<AuditSettings, 'file'>;
  retention: { exportTo?: string };
}): void {
  const within = (name: string, path: string) => `${name} is ${path}, within the data directory ${dataDir}`;
  if (exportTo !== undefined && leadsInto(exportTo, dataDir))
    throw invalid(`${within('retention.exportTo', exportTo)}; name another place.`);
  if (file !== undefined && leadsInto(file, dataDir) && !logName.test(realPath(file)))
    throw invalid(
      `${within('audit.file', file)}; name another place, or a file that ends in .jsonl or .log.`,
    );
  if (exportTo !== undefined && statSync(exportTo, { throwIfNoEntry: false })?.isDirectory() === false)
    throw invalid(`retention.exportTo is ${exportTo}, which is no directory.`);
}

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}
