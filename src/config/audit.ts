/** The `audit` section of the configuration: how often the trail is signed, and where it is sent. */
import type { NamedFiles } from './named-files.ts';
import { readSecrets } from './webhook-secrets.ts';

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
const timeoutSeconds = { type: 'number', minimum: 1, maximum: 300 };
const section = (required: string[], properties: object) => ({
  type: 'object',
  additionalProperties: false,
  required,
  properties,
});

/** The JSON schema of the section. */
export const auditSchema = section([], {
  signSeconds: { type: 'number', minimum: 1, maximum: 86_400 },
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
