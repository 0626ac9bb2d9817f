/** The lab file's `kubernetes` section: the address of a cluster's API server, and the service's credentials there. */
import { invalidRequest } from '../error.ts';

export interface KubernetesSettings {
  /** A file path; relative paths in the kubeconfig are relative to its directory. */
  kubeconfig?: string;
  /** The kubeconfig's context to use; absent: its current one. */
  context?: string;
  /** In place of a kubeconfig: `https://…`, with a token or a client certificate. */
  server?: string;
  /** A PEM file; absent: the server's certificate is publicly trusted. */
  certificateAuthority?: string;
  tokenFile?: string;
  clientCertificate?: string;
  clientKey?: string;
  /** `https://…`, the API server's address for people; absent: the service's address for it. */
  publicServer?: string;
  /** As the API server's `--oidc-username-prefix`: `-` for none; absent: none for email, else the issuer and `#`. */
  usernamePrefix?: string;
  /** The CephFilesystemSubVolumeGroup whose quota is the cluster's; absent: the only one. */
  subVolumeGroup?: string;
}

export const kubernetesFiles = [
  'kubeconfig',
  'certificateAuthority',
  'tokenFile',
  'clientCertificate',
  'clientKey',
] as const;

/** Throws `invalid_request` for a section that names no API server, or has contradictory settings. */
export function checkKubernetesSettings(cluster: string, settings: KubernetesSettings): void {
  const fault = faultOf(settings);
  if (fault) throw invalidRequest(`Cluster ${cluster}: its kubernetes section ${fault}.`);
}

function faultOf(settings: KubernetesSettings): string | undefined {
  const { kubeconfig, context, server, tokenFile, clientCertificate, clientKey } = settings;
  if (settings.usernamePrefix?.startsWith('system:'))
    return 'has a usernamePrefix under system:, which Kubernetes keeps for itself';
  if (kubeconfig === undefined && server === undefined) return 'needs a kubeconfig or a server';
  if (kubeconfig !== undefined) {
    const other = ['server', 'certificateAuthority', 'tokenFile', 'clientCertificate', 'clientKey'] as const;
    const given = other.find((name) => settings[name] !== undefined);
    return given && `has a kubeconfig, which goes without ${given}`;
  }
  if (context !== undefined) return 'has a context, which goes with a kubeconfig only';
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    return 'needs both a clientCertificate and a clientKey, or neither';
  }
  if ((tokenFile === undefined) === (clientKey === undefined)) {
    return 'needs either a tokenFile or a clientCertificate with its clientKey';
  }
  return undefined;
}
