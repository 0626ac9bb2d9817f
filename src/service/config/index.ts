/** The configuration: one YAML file and a few flags become one frozen, typed value. Every default, and its reason. */
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { AccessPolicy } from '../../domain/access/lapse.ts';
import { DomainError } from '../../domain/error.ts';
import type { SecretsKeys } from '../../lib/secrets-key.ts';
import { mostTrustedProxies } from '../../lib/source-address.ts';
import { type AcmeConfig, acmeSchema, listAcmeFiles, type RawAcme, readAcme } from './acme.ts';
import { type Address, isWildcard, readAddress, readProxies, refuseSharedPorts } from './addresses.ts';
import { type AuditSettings, auditSchema, listAuditFiles, type RawAudit, readAudit } from './audit.ts';
import { type BackupSettings, backupSchema, listBackupFiles, type RawBackup, readBackup } from './backup.ts';
import { type ClusterConfig, clustersSchema, type RawClusters, readClusters } from './clusters.ts';
import { type ConsoleClient, checkConsole, consoleClientSchema, readConsoleClient } from './console.ts';
import { databaseSchema, type RawDatabase, readDatabase } from './database.ts';
import { duration } from './duration.ts';
import {
  type GatewayLimitsConfig,
  gatewayLimitsSchema,
  type RawGatewayLimits,
  readGatewayLimits,
} from './gateway-limits.ts';
import { accessSchema, type RetentionConfig, readRetention, retentionSchema } from './lifetimes.ts';
import {
  type HttpConfig,
  httpSchema,
  listHttpListeners,
  type RawHttp,
  readHttp,
  type Source,
  urlPattern,
} from './listeners.ts';
import { invalid, namedFiles, readFile } from './named-files.ts';
import { refuseOutputInDataDir } from './output-paths.ts';
import { readSecretsKey } from './secrets-key.ts';
import { lineOfSentence, readSettings } from './settings-file.ts';
import { checkShared } from './shared-database.ts';
import {
  listTracingFiles,
  type RawTracing,
  readTracing,
  type TracingSettings,
  tracingSchema,
} from './tracing.ts';

export type { Address } from './addresses.ts';

export type { HttpConfig } from './listeners.ts';

type ProxyProtocol = 'required' | 'optional' | 'off';

export interface Config {
  /** Whether this is the demonstration, in which everything is for trying. */
  demo: boolean;
  /** The files that it consists of: itself, and those it names. */
  files: readonly string[];
  dataDir: string;
  /** The URL of the PostgreSQL that several servers share; undefined: SQLite's file in `dataDir`. */
  database: string | undefined;
  /** This server among those of the same database. */
  server: {
    name: string;
    /** When it stops, how long it says so (`/readyz`) before it takes no new connections; 0 when left out. */
    drainMs: number;
  };
  platform: HttpConfig;
  business: HttpConfig;
  gateway: {
    listen: Address;
    hostname: string;
    port: number;
    /** How many processes it has of its own; 0: it is in the service's. */
    processes: number;
    /** Whose these are, where the service is root; its own, or those of the usual account, when left out. */
    account?: string;
    /** Where they differ from the gateway's own. */
    limits: GatewayLimitsConfig;
    /** Whether trusted proxies begin with a PROXY header; `optional` when left out. */
    proxyProtocol?: ProxyProtocol;
  };
  identity: {
    /** An external issuer; undefined: the embedded one. */
    issuer: string | undefined;
    audiences: readonly string[];
    cliClientId: string;
    /** Scopes that clients request by way of discovery, where the issuer does not know the usual ones. */
    scopes: readonly string[] | undefined;
    /** `issuerAuthority`: the issuer's certificate authority in PEM, where not everyone trusts it. */
    kubernetes: { clientId: string; usernameClaim: string; issuerAuthority?: string } | undefined;
    serviceAccountClaim: { name: string; value: unknown } | undefined;
    /** The web console's client at an external issuer. The embedded one knows it by itself. */
    console: ConsoleClient | undefined;
    embedded: HttpConfig;
  };
  /** Addresses and networks of proxies whose headers about their clients are trusted. */
  trustedProxies: readonly string[];
  /** HTTP connections of one address, and of everybody together, at each listener. */
  http: { connectionsPerSource: number; connections: number };
  sync: { intervalMs: number };
  clusters: ClusterConfig;
  uids: {
    /** The first number that people's accounts get; a higher one that was reached already stays. */
    base: number;
  };
  /** When access lapses without a sign-in, and when keys do; left out: never. */
  access: AccessPolicy;
  /** How many days what is kept is kept; left out: for good. */
  retention: RetentionConfig;
  log: { level: 'debug' | 'info' | 'warn' | 'error' };
  audit: AuditSettings;
  /** Backups that the service makes by itself; undefined: none. */
  backup: BackupSettings | undefined;
  /** Where traces are sent; undefined: nothing is traced. */
  tracing: TracingSettings | undefined;
  /** How certificates are obtained; undefined where none is. */
  acme: AcmeConfig | undefined;
  /** Where Prometheus finds metrics; undefined: nowhere. */
  metrics: HttpConfig | undefined;
  /** Where the web console is; undefined: there is none. */
  console: HttpConfig | undefined;
  /** What secrets in a shared database are encrypted with; undefined where there is none. */
  secrets: SecretsKeys | undefined;
  /** A lab file for an empty database. */
  seed: string | undefined;
}

interface RawConfig extends RawDatabase {
  dataDir?: string;
  server?: { name?: string; drainSeconds?: number };
  platform?: RawHttp;
  business?: RawHttp;
  gateway?: {
    listen?: string;
    hostname?: string;
    port?: number;
    processes?: number;
    account?: string;
    limits?: RawGatewayLimits;
    proxyProtocol?: ProxyProtocol;
  };
  identity?: {
    issuer?: string;
    audiences?: string[];
    cliClientId?: string;
    scopes?: string[];
    kubernetes?: { clientId: string; usernameClaim?: string; issuerCertificateAuthority?: string };
    serviceAccountClaim?: { name: string; value: unknown };
    console?: Omit<ConsoleClient, 'clientSecret'>;
    embedded?: RawHttp;
  };
  trustedProxies?: string[];
  http?: { connectionsPerSource?: number; connections?: number };
  sync?: { intervalSeconds?: number };
  clusters?: RawClusters;
  uids?: { base?: number };
  access?: AccessPolicy;
  retention?: RetentionConfig;
  log?: { level?: Config['log']['level'] };
  audit?: RawAudit;
  backup?: RawBackup;
  tracing?: RawTracing;
  acme?: RawAcme;
  metrics?: RawHttp;
  console?: RawHttp;
  secretsKeyFile?: string;
  seed?: string;
}

const text = { type: 'string', minLength: 1 };
const url = { type: 'string', pattern: urlPattern };
const connections = { type: 'integer', minimum: 8, maximum: 1_000_000 };
const port = { type: 'integer', minimum: 1, maximum: 65_535 };
const section = (properties: object, required: string[] = []) => ({
  type: 'object',
  additionalProperties: false,
  required,
  properties,
});
const schema = section({
  dataDir: text,
  ...databaseSchema,
  server: section({
    name: { ...text, maxLength: 100 },
    drainSeconds: duration('seconds', 0, 120),
  }),
  platform: httpSchema,
  business: httpSchema,
  gateway: section({
    listen: text,
    hostname: text,
    port,
    processes: { type: 'integer', minimum: 0, maximum: 64 },
    account: { type: 'string', pattern: '^[a-z_][a-z0-9_-]{0,30}$' },
    limits: gatewayLimitsSchema,
    proxyProtocol: { type: 'string', enum: ['required', 'optional', 'off'] },
  }),
  identity: section({
    issuer: url,
    audiences: { type: 'array', items: text, minItems: 1 },
    cliClientId: text,
    scopes: { type: 'array', items: text, minItems: 1 },
    kubernetes: section({ clientId: text, usernameClaim: text, issuerCertificateAuthority: text }, [
      'clientId',
    ]),
    serviceAccountClaim: section({ name: text, value: {} }, ['name', 'value']),
    console: consoleClientSchema,
    embedded: httpSchema,
  }),
  trustedProxies: { type: 'array', items: text, maxItems: mostTrustedProxies },
  http: section({ connectionsPerSource: connections, connections }),
  sync: section({ intervalSeconds: duration('seconds', 0.1, 60) }),
  clusters: clustersSchema,
  // Below are the system's own and its first people, above the ranges that systemd keeps for itself.
  uids: section({ base: { type: 'integer', minimum: 1000, maximum: 60_000 } }),
  access: accessSchema,
  retention: retentionSchema,
  log: section({ level: { type: 'string', enum: ['debug', 'info', 'warn', 'error'] } }),
  audit: auditSchema,
  backup: backupSchema,
  tracing: tracingSchema,
  acme: acmeSchema,
  metrics: httpSchema,
  console: httpSchema,
  secretsKeyFile: text,
  seed: text,
});

/** Reads `andromeda.yaml`. Paths in it are relative to it. Throws `invalid_request` with a sentence that names file and line. */
export function readConfig(file: string): Config {
  const raw = readSettings<RawConfig>(file, schema);
  try {
    return settle(raw, file, listNamedFiles(raw, file));
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const sentence = error.message.replace(`${file}: `, '');
    throw new DomainError(error.code, `${lineOfSentence(file, sentence) ?? file}: ${sentence}`, {
      cause: error,
    });
  }
}

/** The files that an installation's configuration consists of: itself, and those it names. Throws as `readConfig` does. */
export function listConfigFiles(file: string): string[] {
  return listNamedFiles(readSettings<RawConfig>(file, schema), file);
}

function listNamedFiles(raw: RawConfig, file: string): string[] {
  const { platform, business, identity, audit, backup, tracing, acme, metrics, console, seed } = raw;
  const pairs = [platform, business, identity?.embedded, metrics, console].flatMap(({ tls } = {}) =>
    typeof tls === 'object' ? [tls.cert, tls.key] : [],
  );
  const named = [
    ...pairs,
    ...listAcmeFiles(acme),
    raw.databaseFile,
    identity?.console?.clientSecretFile,
    ...listAuditFiles(audit),
    ...(backup ? listBackupFiles(backup) : []),
    ...listTracingFiles(tracing),
    raw.secretsKeyFile,
    seed,
  ].filter((path) => path !== undefined);
  const here = dirname(resolve(file));
  return [resolve(file), ...named.map((path) => resolve(here, path))];
}

/** The demonstration's configuration: every default, everything on loopback, data in `dataDir`. */
export function demoConfig(dataDir: string): Config {
  const identity = { kubernetes: { clientId: 'andromeda-kubernetes' } };
  const clusters = { allowSimulated: true };
  const raw = { dataDir: resolve(dataDir), gateway: { port: 2222 }, identity, console: {}, clusters };
  return { ...settle(raw, resolve('andromeda.yaml'), []), demo: true };
}

/** `own`: the files that the configuration consists of. */
function settle(raw: RawConfig, file: string, own: readonly string[]): Config {
  const here = (path: string) => resolve(dirname(resolve(file)), path);
  const dataDir = here(raw.dataDir ?? './data');
  const source = { file, here, dataDir };
  const files = namedFiles(file);
  const database = readDatabase(raw, file, files);
  const parts = {
    demo: false,
    files: own,
    dataDir,
    database,
    server: { name: raw.server?.name ?? hostname(), drainMs: (raw.server?.drainSeconds ?? 10) * 1000 },
    platform: readHttp(source, 'platform', raw.platform, 8080),
    business: readHttp(source, 'business', raw.business, 8081),
    gateway: readGateway(file, raw.gateway ?? {}),
    identity: readIdentity(source, raw.identity ?? {}),
    trustedProxies: readProxies(file, raw.trustedProxies ?? []),
    // A whole site can stand behind one address, and its browsers keep connections for a minute.
    http: {
      connectionsPerSource: raw.http?.connectionsPerSource ?? 512,
      connections: raw.http?.connections ?? 8192,
    },
    sync: { intervalMs: (raw.sync?.intervalSeconds ?? 15) * 1000 },
    clusters: readClusters(raw.clusters, { file: resolve(file), dataDir, own }),
    uids: { base: raw.uids?.base ?? 20_000 },
    access: raw.access ?? {},
    retention: readRetention(here, raw.retention),
    log: { level: raw.log?.level ?? 'info' },
    audit: readAudit(raw.audit, files),
    backup:
      raw.backup &&
      readBackup(raw.backup, { at: here, dataDir, invalid: (sentence) => invalid(file, sentence) }),
    tracing: raw.tracing && readTracing(raw.tracing, files),
    metrics: raw.metrics && readHttp(source, 'metrics', raw.metrics, 9464),
    console: raw.console && readHttp(source, 'console', raw.console, 8083),
    secrets: readSecretsKey(raw, file, files),
    seed: raw.seed === undefined ? undefined : here(raw.seed),
  };
  const config: Config = { ...parts, acme: readAcme(raw.acme, listHttpListeners(parts), file, files) };
  if (config.identity.issuer === undefined && config.identity.audiences.length > 1) {
    throw invalid(
      file,
      'identity.audiences: the embedded issuer puts one audience into a token; give just one.',
    );
  }
  checkShared(raw, file);
  refuseOutputInDataDir(file, config);
  checkConsole(file, config);
  refuseSharedAddresses(file, config);
  return Object.freeze(config);
}

function readGateway(file: string, given: NonNullable<RawConfig['gateway']>): Config['gateway'] {
  const listen = readAddress(file, 'gateway.listen', given.listen ?? '127.0.0.1:2222');
  if (given.hostname === undefined && isWildcard(listen.host)) {
    throw invalid(
      file,
      `gateway.listen is ${listen.host}, which is every address of this machine. Give gateway.hostname, the name that people log in to.`,
    );
  }
  if (given.processes === 0 && given.account !== undefined) {
    throw invalid(
      file,
      'gateway.account is for the gateway’s own processes, and with gateway.processes: 0 there are none. Leave one of them out.',
    );
  }
  return {
    listen,
    hostname: given.hostname ?? listen.host,
    port: given.port ?? 22,
    processes: given.processes ?? 1,
    ...(given.account !== undefined && { account: given.account }),
    limits: readGatewayLimits(given.limits),
    ...(given.proxyProtocol && { proxyProtocol: given.proxyProtocol }),
  };
}

function readIdentity(source: Source, given: NonNullable<RawConfig['identity']>): Config['identity'] {
  const { file, here } = source;
  return {
    issuer: given.issuer,
    audiences: given.audiences ?? ['andromeda'],
    cliClientId: given.cliClientId ?? 'andromeda-cli',
    scopes: given.scopes,
    kubernetes: given.kubernetes && {
      clientId: given.kubernetes.clientId,
      usernameClaim: given.kubernetes.usernameClaim ?? 'email',
      ...(given.kubernetes.issuerCertificateAuthority !== undefined && {
        issuerAuthority: readFile(
          file,
          'identity.kubernetes.issuerCertificateAuthority',
          here(given.kubernetes.issuerCertificateAuthority),
        ).toString('utf8'),
      }),
    },
    serviceAccountClaim: given.serviceAccountClaim,
    console: given.console && readConsoleClient(namedFiles(file), file, given.console),
    embedded: readHttp(source, 'identity.embedded', given.embedded, 8082),
  };
}

function refuseSharedAddresses(file: string, config: Config): void {
  const { platform, business, gateway, identity, metrics, console } = config;
  const listeners: [string, Address][] = [
    ['platform', platform.listen],
    ['business', business.listen],
    ['gateway', gateway.listen],
  ];
  if (metrics) listeners.push(['metrics', metrics.listen]);
  if (console) listeners.push(['console', console.listen]);
  if (config.acme) listeners.push(['acme', config.acme.listen]);
  if (identity.issuer === undefined) listeners.push(['identity.embedded', identity.embedded.listen]);
  refuseSharedPorts(file, listeners);
}
