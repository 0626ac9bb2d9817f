/** The `audit` section of the configuration: how often the trail is signed, and where it is sent. */

export interface AuditSettings {
  signMs: number;
  file: string | undefined;
  syslog: { protocol: 'udp' | 'tcp' | 'tls'; host: string; port: number; ca: Buffer | undefined } | undefined;
}

export interface RawAudit {
  signSeconds?: number;
  file?: string;
  syslog?: { to: string; ca?: string };
}

const port = '[1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5]';
const address = new RegExp(`^(udp|tcp|tls)://(?:\\[([0-9a-fA-F:.]+)\\]|([^:[\\]/\\s]+)):(${port})$`);

/** The JSON schema of the section. */
export const auditSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    signSeconds: { type: 'number', minimum: 1, maximum: 86_400 },
    file: { type: 'string', minLength: 1 },
    syslog: {
      type: 'object',
      additionalProperties: false,
      required: ['to'],
      properties: { to: { type: 'string', pattern: address.source }, ca: { type: 'string', minLength: 1 } },
    },
  },
};

/** The section, which fits the schema. `at` makes a path absolute, `read` reads a file or refuses with a sentence. */
export function readAudit(
  { signSeconds = 60, file, syslog }: RawAudit = {},
  at: (path: string) => string,
  read: (name: string, path: string) => Buffer,
): AuditSettings {
  const [, protocol, bracketed, plain = '', port] = address.exec(syslog?.to ?? '') ?? [];
  return {
    signMs: signSeconds * 1000,
    file: file === undefined ? undefined : at(file),
    syslog: syslog && {
      protocol: protocol as 'udp' | 'tcp' | 'tls',
      host: bracketed ?? plain,
      port: Number(port),
      ca: syslog.ca === undefined ? undefined : read('audit.syslog.ca', at(syslog.ca)),
    },
  };
}
