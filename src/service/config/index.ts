/** The configuration: one YAML file and a few flags become one frozen, typed value. Every default, and its reason. */
import { X509Certificate } from 'node:crypto';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { isSafeUrl, mostTrustedProxies } from '../../lib/source-address.ts';
import { accessSchema, readAccess } from './access.ts';
import { acmeSchema, readAcme } from './acme.ts';
import { isWildcard, readAddress, readProxies, refuseSharedPorts } from './addresses.ts';
import { auditSchema, readAudit, refuseCopyOverOthers } from './audit.ts';
import { backupSchema, readBackup } from './backup.ts';
import { clustersSchema, readClusters } from './clusters.ts';
import { checkConsole, consoleClientSchema, readConsoleClient } from './console.ts';
import { databaseSchema, readDatabase, readSecretsKey } from './database.ts';
import { gatewayLimitsSchema, readGatewayLimits } from './gateway-limits.ts';
import { groupsSchema, readGroupSettings } from './groups.ts';
import { httpSchema, listHttpListeners, readHttp, urlSchema } from './listeners.ts';
import { invalid, NamedFiles } from './named-files.ts';
import {
  duration,
  file,
  flag,
  integer,
  list,
  listFiles,
  oneOf,
  pattern,
  section,
  text,
  type Value,
} from './schema.ts';
import { lineOfSentence, readSettings } from './settings-file.ts';

export type { Address } from './addresses.ts';

export type { HttpConfig } from './listeners.ts';

/** The file's settings, with defaults and in the units of the program. The meaning of each setting: docs/configuration.md. */
export type Config = Readonly<ReturnType<typeof settle>>;

const days = duration('days', 1, 36_500);
const retentionSchema = section({
  // A client repeats a request within minutes, and must get the answer of the first time.
  commands: duration('days', 7, 36_500),
  sessions: days,
  audit: days,
});

const connections = integer(8, 1_000_000);
const gatewaySchema = section({
  listen: text,
  hostname: text,
  port: integer(1, 65_535),
  // 0: the gateway runs in the service's process.
  processes: integer(0, 64),
  account: pattern('^[a-z_][a-z0-9_-]{0,30}$'),
  limits: gatewayLimitsSchema,
  proxyProtocol: oneOf('required', 'optional', 'off'),
  securityKeys: flag,
  requireSecurityKeys: oneOf('none', 'staff'),
});
const kubernetesSchema = section({ clientId: text, usernameClaim: text }, ['clientId']);
const identitySchema = section({
  issuer: urlSchema,
  // The CA of the issuer in PEM, where it is not a public one.
  ca: file,
  audiences: list(text, { minItems: 1 }),
  cliClientId: text,
  scopes: list(text, { minItems: 1 }),
  kubernetes: kubernetesSchema,
  serviceAccountClaim: section({ name: text, value: {} }, ['name', 'value']),
  groups: groupsSchema,
  console: consoleClientSchema,
  embedded: httpSchema,
  secondFactor: oneOf('none', 'staff', 'all'),
  trustEmail: list(text, { minItems: 1 }),
  // Whether the console requests an audience (RFC 8707); `auto`: until refused. Clients always do: a platform must keep it on.
  resourceParameter: oneOf('auto', 'always', 'never'),
});
const schema = section({
  dataDir: text,
  ...databaseSchema,
  server: section({ name: { ...text, maxLength: 100 }, drainSeconds: duration('seconds', 0, 120) }),
  platform: httpSchema,
  business: httpSchema,
  gateway: gatewaySchema,
  identity: identitySchema,
  trustedProxies: list(text, { maxItems: mostTrustedProxies }),
  http: section({ connectionsPerSource: connections, connections }),
  sync: section({ intervalSeconds: duration('seconds', 0.1, 60) }),
  clusters: clustersSchema,
  // Lower UIDs are the system's own and its first people's; higher ones are in ranges that systemd keeps for itself.
  uids: section({ base: integer(1000, 60_000) }),
  access: accessSchema,
  retention: retentionSchema,
  log: section({ level: oneOf('debug', 'info', 'warn', 'error') }),
  audit: auditSchema,
  backup: backupSchema,
  acme: acmeSchema,
  metrics: httpSchema,
  console: httpSchema,
  seed: file,
});
type RawConfig = Value<typeof schema>;

/** Reads `andromeda.yaml`. Relative paths in it start at its directory. Throws `invalid_request` with a sentence that names file and line. */
export function readConfig(file: string): Config {
  const raw = readSettings(file, schema);
  try {
    return settle(raw, new NamedFiles(file));
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const { code, message } = error;
    throw new DomainError(code, `${lineOfSentence(file, message) ?? file}: ${message}`, { cause: error });
  }
}

/** The files of an installation's configuration: itself, and those it names. Throws as `readConfig` does. */
export function listConfigFiles(file: string): string[] {
  return filesOf(readSettings(file, schema), new NamedFiles(file));
}

function filesOf(raw: RawConfig, files: NamedFiles): string[] {
  return [files.file, ...listFiles(schema, raw).map((path) => files.at(path))];
}

/** The demonstration's configuration: every default, everything on loopback, data in `dataDir`. */
export function demoConfig(dataDir: string): Config {
  const identity = { kubernetes: { clientId: 'andromeda-kubernetes' } };
  const clusters = { allowSimulated: true };
  const raw = { dataDir: resolve(dataDir), gateway: { port: 2222 }, identity, console: {}, clusters };
  return { ...settle(raw, new NamedFiles('andromeda.yaml')), demo: true, files: [] };
}

function settle(raw: RawConfig, files: NamedFiles) {
  const dataDir = files.at(raw.dataDir ?? './data');
  const own = filesOf(raw, files);
  const listeners = readListeners(raw, files, dataDir);
  const parts = {
    demo: false as boolean,
    /** The file of the configuration itself, and the files it names. */
    files: own as readonly string[],
    dataDir,
    /** The URL of the PostgreSQL that several servers share; undefined: SQLite's file in `dataDir`. */
    database: readDatabase(raw, files),
    server: { name: raw.server?.name ?? hostname(), drainMs: (raw.server?.drainSeconds ?? 10) * 1000 },
    ...listeners,
    gateway: readGateway(raw.gateway ?? {}),
    trustedProxies: readProxies(raw.trustedProxies ?? []),
    // A whole site can share one address, and its browsers keep connections for a minute.
    http: { connectionsPerSource: 512, connections: 8192, ...raw.http },
    sync: { intervalMs: (raw.sync?.intervalSeconds ?? 15) * 1000 },
    clusters: readClusters(raw.clusters, { file: files.file, dataDir, own }),
    uids: { base: 20_000, ...raw.uids },
    access: readAccess(raw.access, raw.gateway, listeners.console?.url),
    retention: raw.retention ?? {},
    log: { level: raw.log?.level ?? 'info' },
    audit: readAudit(raw.audit, files),
    backup: raw.backup && readBackup(raw.backup, { files, dataDir }),
    secrets: readSecretsKey(raw, files),
    seed: raw.seed === undefined ? undefined : files.at(raw.seed),
  };
  const config = { ...parts, acme: readAcme(raw.acme, listHttpListeners(parts), files) };
  if (config.identity.issuer === undefined && config.identity.audiences.length > 1)
    throw invalid('identity.audiences: the embedded issuer puts one audience into a token; give just one.');
  if (config.identity.issuer !== undefined && raw.identity?.secondFactor !== undefined)
    throw invalid('identity.secondFactor is for the built-in sign-in; your issuer asks for its own factors.');
  refuseCopyOverOthers(config);
  checkConsole(config);
  refuseSharedPorts([...listHttpListeners(config), ['gateway', config.gateway], ['acme', config.acme]]);
  return Object.freeze(config);
}

function readListeners(raw: RawConfig, files: NamedFiles, dataDir: string) {
  const http = (name: string, given: Value<typeof httpSchema> | undefined, defaultPort: number) =>
    readHttp(name, given, { defaultPort, files, dataDir });
  const identity = raw.identity ?? {};
  return {
    platform: http('platform', raw.platform, 8080),
    business: http('business', raw.business, 8081),
    metrics: raw.metrics && http('metrics', raw.metrics, 9464),
    console: raw.console && http('console', raw.console, 8083),
    identity: {
      ...readIdentity(identity, files),
      embedded: http('identity.embedded', identity.embedded, 8082),
      secondFactor: identity.secondFactor ?? 'none',
    },
  };
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).subject !== '';
  } catch {
    return false;
  }
}

function readGateway(given: Value<typeof gatewaySchema>) {
  const { hostname, port = 22, processes = 1, limits, account, proxyProtocol } = given;
  const { securityKeys = false } = given;
  const listen = readAddress('gateway.listen', given.listen ?? '127.0.0.1:2222');
  if (hostname === undefined && isWildcard(listen.host))
    throw invalid(
      `gateway.listen is ${listen.host}, which is every address of this machine. Give gateway.hostname, the name that people log in to.`,
    );
  if (processes === 0 && account !== undefined)
    throw invalid(
      'gateway.account is for the gateway’s own processes, and with gateway.processes: 0 there are none. Leave one of them out.',
    );
  return {
    listen,
    hostname: hostname ?? listen.host,
    port,
    processes,
    ...(account !== undefined && { account }),
    limits: readGatewayLimits(limits),
    securityKeys,
    ...(proxyProtocol && { proxyProtocol }),
  };
}

function readIdentity(given: Value<typeof identitySchema>, files: NamedFiles) {
  const { issuer, audiences = ['andromeda'], cliClientId = 'andromeda-cli', scopes, kubernetes } = given;
  // OpenID Connect Discovery 1.0, 3. With keys over plain HTTP, anyone on the network path could become an operator.
  if (issuer !== undefined && !isSafeUrl(new URL(issuer)))
    throw invalid(`identity.issuer is ${issuer}, which is plain http. Give its https address.`);
  const ca = files.read('identity.ca', given.ca)?.toString('utf8');
  if (ca !== undefined && !isCertificate(ca))
    throw invalid(`identity.ca: ${given.ca} holds no certificate in PEM.`);
  return {
    issuer,
    ca,
    audiences,
    cliClientId,
    scopes,
    kubernetes: kubernetes && {
      clientId: kubernetes.clientId,
      usernameClaim: kubernetes.usernameClaim ?? 'email',
    },
    trustEmail: given.trustEmail ?? [],
    resourceParameter: given.resourceParameter ?? 'auto',
    serviceAccountClaim: given.serviceAccountClaim,
    groups: given.groups && readGroupSettings(given.groups, issuer),
    console: given.console && readConsoleClient(given.console, files),
  };
}
