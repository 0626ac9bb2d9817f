/** A cluster's `kubernetes` section → the library's configuration, with what is not safe refused. */
import { readFileSync } from 'node:fs';
import type { KubeConfig } from '@kubernetes/client-node';
import type { KubernetesSettings } from '../../domain/kubernetes/settings.ts';

/** Loads what the section names into `config`. Throws a message for a person where it cannot be used. */
export function loadCredentials(config: KubeConfig, settings: KubernetesSettings): void {
  if (settings.kubeconfig !== undefined) loadKubeconfig(config, settings.kubeconfig, settings.context);
  else loadServer(config, settings);
  const cluster = config.getCurrentCluster();
  if (!cluster?.server)
    throw new Error(`${settings.kubeconfig}: its context names no cluster with a server.`);
  if (!config.getCurrentUser()) throw new Error(`${settings.kubeconfig}: its context names no user.`);
  // The credentials that are sent to this server make people administrators.
  if (cluster.skipTLSVerify) {
    throw new Error(
      `${settings.kubeconfig}: insecure-skip-tls-verify is not supported; give the certificate authority instead.`,
    );
  }
  if (!cluster.server.startsWith('https://')) {
    throw new Error(`The Kubernetes API server ${cluster.server} must be an https:// address.`);
  }
}

/** The certificate authority in PEM; undefined where everyone trusts the server's certificate. */
export function certificateAuthority(config: KubeConfig): string | undefined {
  const { caFile, caData } = config.getCurrentCluster() ?? {};
  if (caFile) return read(caFile);
  return caData ? Buffer.from(caData, 'base64').toString('utf8') : undefined;
}

function loadKubeconfig(config: KubeConfig, file: string, context: string | undefined): void {
  read(file);
  try {
    config.loadFromFile(file);
  } catch (error) {
    // The library's message may hold parts of the file, and so of a secret: they are for no log.
    const where = (error as { mark?: { line?: number } }).mark?.line;
    throw new Error(
      `${file}${where === undefined ? '' : `:${where + 1}`}: it cannot be read as a kubeconfig.`,
    );
  }
  if (context === undefined) return;
  if (!config.getContextObject(context)) throw new Error(`${file}: it has no context ${context}.`);
  config.setCurrentContext(context);
}

function loadServer(config: KubeConfig, settings: KubernetesSettings): void {
  const { server = '', certificateAuthority: ca, tokenFile, clientCertificate, clientKey } = settings;
  for (const file of [ca, tokenFile, clientCertificate, clientKey]) if (file !== undefined) read(file);
  config.loadFromClusterAndUser(
    { name: 'cluster', server, skipTLSVerify: false, ...(ca === undefined ? {} : { caFile: ca }) },
    {
      name: 'andromeda',
      // Read again every minute, as Kubernetes changes the tokens that it makes.
      ...(tokenFile === undefined ? {} : { authProvider: { name: 'tokenFile', config: { tokenFile } } }),
      ...(clientCertificate === undefined ? {} : { certFile: clientCertificate }),
      ...(clientKey === undefined ? {} : { keyFile: clientKey }),
    },
  );
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`Cannot read ${file}: ${code === 'ENOENT' ? 'there is no such file' : code}.`);
  }
}
