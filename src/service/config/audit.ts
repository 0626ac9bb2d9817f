/** The `audit` section of the configuration: how often the trail is signed, and where it is sent. */

import { DomainError } from '../../domain/error.ts';
import { duration } from './duration.ts';
import type { NamedFiles } from './named-files.ts';

const secretForm = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/;
/** More than one only while one takes the place of the other. */
const mostSecrets = 4;

/** The secrets of a file. Throws `invalid_request` with a sentence, which quotes nothing of it. */
function readSecrets(name: string, path: string, content: Buffer): Buffer[] {
  const lines = content
    .toString('latin1')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const secrets = lines.map((line) => Buffer.from(secretForm.exec(line)?.[1] ?? '', 'base64'));
  if (secrets.length === 0 || secrets.length > mostSecrets || secrets.some(({ length }) => length < 24))
    throw new DomainError(
      'invalid_request',
      `${name}: ${path} must hold one secret a line, at most ${mostSecrets}: "whsec_" and 24 to 64 bytes in base64. Make one with: (umask 077; echo "whsec_$(openssl rand -base64 32)" > ${path})`,
    );
  return secrets;
}

export interface AuditSettings {
  signMs: number;
  file: string | undefined;
  syslog: SyslogSettings | undefined;
  webhook: WebhookSettings | undefined;
}

interface SyslogSettings {
  protocol: 'udp' | 'tcp' | 'tls';
  host: string;
  port: number;
  ca: Buffer | undefined;
  client: { cert: Buffer; key: Buffer } | undefined;
  timeoutMs: number;
}

interface WebhookSettings {
  url: URL;
  secrets: readonly Buffer[];
  ca: Buffer | undefined;
  skip: ReadonlySet<number>;
  timeoutMs: number;
}

export interface RawAudit {
  signSeconds?: number;
  file?: string;
  syslog?: { to: string; ca?: string; cert?: string; key?: string; timeoutSeconds?: number };
  webhook?: { to: string; secretFile: string; ca?: string; skip?: number[]; timeoutSeconds?: number };
}

const port = '[1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5]';
const address = new RegExp(`^(udp|tcp|tls)://(?:\\[([0-9a-fA-F:.]+)\\]|([^:[\\]/\\s]+)):(${port})$`);
const path = { type: 'string', minLength: 1 };
const timeoutSeconds = duration('seconds', 1, 300);
const section = (required: string[], properties: object) => ({
  type: 'object',
  additionalProperties: false,
  required,
  properties,
});

/** The JSON schema of the section. */
export const auditSchema = section([], {
  signSeconds: duration('seconds', 1, 86_400),
  file: path,
  syslog: {
    ...section(['to'], {
      to: {
        type: 'string',
        form: 'as tls://logs.example.org:6514, with udp, tcp or tls and a port',
        pattern: address.source,
      },
      ca: path,
      cert: path,
      key: path,
      timeoutSeconds,
    }),
    dependencies: { cert: ['key'], key: ['cert'] },
  },
  webhook: section(['to', 'secretFile'], {
    // What crosses a network crosses it encrypted; a name and password in an address end in logs.
    to: {
      type: 'string',
      form: 'as https://collector.example.org/audit (http only to this machine), without user and password',
      pattern: '^(https://[^/?#@\\s]+|http://(127\\.0\\.0\\.1|localhost|\\[::1\\])(:\\d+)?)([/?][^#\\s]*)?$',
    },
    secretFile: path,
    ca: path,
    skip: { type: 'array', items: { type: 'integer', minimum: 1 }, maxItems: 1000 },
    timeoutSeconds,
  }),
});

/** The section's files, as it names them. */
export function listAuditFiles({ syslog, webhook }: RawAudit = {}): string[] {
  return [syslog?.ca, syslog?.cert, syslog?.key, webhook?.ca, webhook?.secretFile].filter(
    (path) => path !== undefined,
  );
}

/** The section, which fits the schema. */
export function readAudit(
  { signSeconds = 60, file, syslog, webhook }: RawAudit = {},
  files: NamedFiles,
): AuditSettings {
  return {
    signMs: signSeconds * 1000,
    file: file === undefined ? undefined : files.at(file),
    syslog: syslog && readSyslog(syslog, files),
    webhook: webhook && readWebhook(webhook, files),
  };
}

const defaultSeconds = 30;

function readSyslog(
  { to, ca, cert, key, timeoutSeconds = defaultSeconds }: NonNullable<RawAudit['syslog']>,
  { at, read, readSecret }: NamedFiles,
): SyslogSettings {
  const [, protocol, bracketed, plain = '', port] = address.exec(to) ?? [];
  return {
    protocol: protocol as 'udp' | 'tcp' | 'tls',
    host: bracketed ?? plain,
    port: Number(port),
    ca: ca === undefined ? undefined : read('audit.syslog.ca', at(ca)),
    client:
      cert === undefined || key === undefined
        ? undefined
        : { cert: read('audit.syslog.cert', at(cert)), key: readSecret('audit.syslog.key', at(key)) },
    timeoutMs: timeoutSeconds * 1000,
  };
}

function readWebhook(
  { to, secretFile, ca, skip = [], timeoutSeconds = defaultSeconds }: NonNullable<RawAudit['webhook']>,
  { at, read, readSecret }: NamedFiles,
): WebhookSettings {
  const name = 'audit.webhook.secretFile';
  return {
    url: new URL(to),
    secrets: readSecrets(name, at(secretFile), readSecret(name, at(secretFile))),
    ca: ca === undefined ? undefined : read('audit.webhook.ca', at(ca)),
    skip: new Set(skip),
    timeoutMs: timeoutSeconds * 1000,
  };
}
