/** Reads a cluster's `kubernetes` section into its API server and our credentials, as kubectl would. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parseDocument } from 'yaml';
import type { KubernetesSettings } from '../../domain/kubernetes/settings.ts';
import { present } from '../../domain/present.ts';
import { fileReason } from '../../lib/error-message.ts';
import { readValue } from '../../lib/yaml-lines.ts';

export interface Credentials {
  server: string;
  tlsServerName?: string;
  proxyUrl?: string;
  /** PEM, as are the next two; left out: a public authority signed the server's certificate. */
  certificateAuthority?: string;
  clientCertificate?: string;
  clientKey?: string;
  headers: Record<string, string>;
}

/** A cluster or a user of a kubeconfig (`k8s.io/client-go/tools/clientcmd/api/v1`). */
type KubeconfigFields = Readonly<Record<string, string | undefined>>;
type KubeconfigUser = KubeconfigFields & { readonly exec?: ExecConfig };

interface Kubeconfig {
  'current-context'?: string;
  clusters?: { name: string; cluster: KubeconfigFields }[];
  users?: { name: string; user: KubeconfigUser }[];
  contexts?: { name: string; context: KubeconfigFields }[];
}

interface ExecConfig {
  apiVersion?: string;
  command?: string;
  args?: string[] | null;
  env?: { name: string; value: string }[] | null;
  provideClusterInfo?: boolean;
}

interface ExecStatus {
  token?: string;
  clientCertificateData?: string;
  clientKeyData?: string;
  expirationTimestamp?: string;
}

/** `insecure…` would send administrators' credentials to any server; API servers removed `auth-provider` and `username`. */
const unsupported = [
  'insecure-skip-tls-verify',
  'auth-provider',
  'username',
  'as-uid',
  'as-groups',
  'as-user-extra',
];

/** Reads all files of the section anew. Throws a message for a person when they cannot be used. */
export async function readCredentials(
  settings: KubernetesSettings,
  commands: CommandCredentials,
): Promise<Credentials> {
  const { kubeconfig: file = '' } = settings;
  const { cluster, user } = file === '' ? named(settings) : readKubeconfig(file, settings.context);
  const at = dirname(resolve(file));
  const fileOf = (name: string | undefined) => (name ? read(resolve(at, name)) : undefined);
  const pem = (fields: KubeconfigFields, name: string) => {
    const data = fields[`${name}-data`];
    return data ? Buffer.from(data, 'base64').toString('utf8') : fileOf(fields[name]);
  };
  if (!cluster?.['server']) throw new Error(`${file}: its context names no cluster with a server.`);
  if (!user) throw new Error(`${file}: its context names no user.`);
  const refused = unsupported.find((name) => cluster[name] || user[name]);
  if (refused) throw new Error(`${file}: ${refused} is not supported.`);
  const server = cluster['server'].replace(/\/+$/, '');
  if (!server.startsWith('https://') || !URL.canParse(server)) {
    throw new Error(`The Kubernetes API server ${server} must be an https:// address.`);
  }
  const certificateAuthority = pem(cluster, 'certificate-authority');
  const token = fileOf(user['tokenFile']) ?? user['token'];
  // As kubectl does: a token goes before the command.
  const made = user.exec && !token ? await commands.get(user.exec, at, { server, certificateAuthority }) : {};
  return present({
    server,
    headers: headersOf(token || made.token, user['as']),
    tlsServerName: cluster['tls-server-name'] || undefined,
    proxyUrl: cluster['proxy-url'] || undefined,
    certificateAuthority,
    clientCertificate: made.clientCertificateData ?? pem(user, 'client-certificate'),
    clientKey: made.clientKeyData ?? pem(user, 'client-key'),
  });
}

function named({ server, certificateAuthority, ...files }: KubernetesSettings): {
  cluster: KubeconfigFields;
  user: KubeconfigUser;
} {
  const { tokenFile, clientCertificate, clientKey } = files;
  return {
    cluster: { server, 'certificate-authority': certificateAuthority },
    user: { tokenFile, 'client-certificate': clientCertificate, 'client-key': clientKey } as KubeconfigUser,
  };
}

function readKubeconfig(file: string, asked: string | undefined) {
  const { value, fault } = readValue(parseDocument(read(file)), true);
  const config = value as Kubeconfig | null | undefined;
  if (typeof config !== 'object' || config === null)
    throw new Error(`${file}${fault ?? ': it cannot be read as a kubeconfig.'}`);
  const name = asked ?? config['current-context'];
  const context = config.contexts?.find((one) => one.name === name)?.context;
  if (asked !== undefined && !context) throw new Error(`${file}: it has no context ${asked}.`);
  return {
    cluster: config.clusters?.find((one) => one.name === context?.['cluster'])?.cluster,
    user: config.users?.find((one) => one.name === context?.['user'])?.user,
  };
}

function headersOf(token: string | undefined, as: string | undefined): Record<string, string> {
  // `trim`: a token file ends with a line end.
  const headers = present({ authorization: token && `Bearer ${token.trim()}`, 'impersonate-user': as });
  // Sending such characters would break the connection.
  if (/[^\x20-\x7e]/.test(Object.values(headers).join('')))
    throw new Error('The credentials have characters that cannot be sent.');
  return headers as Record<string, string>;
}

/** Timeout of a command: it may query a distant service, but never a person (`interactive: false`). */
const commandLimitMs = 30_000;

/** Credentials from a command of a kubeconfig, cached until they expire. */
export class CommandCredentials {
  readonly #limitMs: number;
  readonly #closing = new AbortController();
  #running: Promise<ExecStatus> | undefined;
  #made: { by: string; status: ExecStatus; expiresAt: number } | undefined;

  constructor(limitMs = commandLimitMs) {
    this.#limitMs = limitMs;
  }

  async get(
    exec: ExecConfig,
    directory: string,
    cluster: { server: string; certificateAuthority: string | undefined },
  ): Promise<ExecStatus> {
    const by = JSON.stringify([exec, cluster]);
    if (this.#made?.by === by && Date.now() < this.#made.expiresAt) return this.#made.status;
    this.#running ??= this.#run(exec, directory, cluster).finally(() => {
      this.#running = undefined;
    });
    const status = await this.#running;
    const expiresAt = Date.parse(status.expirationTimestamp ?? '') || Number.POSITIVE_INFINITY;
    this.#made = { by, status, expiresAt };
    return status;
  }

  forget(): void {
    this.#made = undefined;
  }

  close(): void {
    this.#closing.abort();
  }

  async #run(...[exec, directory, cluster]: Parameters<CommandCredentials['get']>): Promise<ExecStatus> {
    const { apiVersion, command = '', args, env, provideClusterInfo } = exec;
    const { server, certificateAuthority = '' } = cluster;
    const known = {
      server,
      'certificate-authority-data': Buffer.from(certificateAuthority).toString('base64'),
    };
    const spec = { interactive: false, ...(provideClusterInfo && { cluster: known }) };
    const info = { KUBERNETES_EXEC_INFO: JSON.stringify({ apiVersion, kind: 'ExecCredential', spec }) };
    const own = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
    try {
      const file = command.includes('/') ? resolve(directory, command) : command;
      // `timeout` also kills the child processes of the command.
      const limited = ['-s', 'KILL', `${this.#limitMs / 1000}`, file, ...(args ?? [])];
      const options = { env: { ...process.env, ...own, ...info }, signal: this.#closing.signal };
      const { stdout } = await promisify(execFile)('timeout', limited, options);
      const answer = JSON.parse(stdout);
      const { token, clientCertificateData, clientKeyData } = answer.status;
      if (answer.apiVersion === apiVersion && (token || (clientCertificateData && clientKeyData)))
        return answer.status;
    } catch {
      // The error is dropped: output of a failed command may contain a secret.
    }
    throw new Error(
      `${command}, which the kubeconfig names, gave no credentials in ${this.#limitMs / 1000} s`,
    );
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`Cannot read ${file}: ${fileReason(error)}.`);
  }
}
