/** The lab file's `kubernetes` section: where a cluster's API server is, and how we are let in there. */
import { invalidRequest } from '../error.ts';

export interface KubernetesSettings {
  /** A file; relative paths in it are relative to its directory. */
  kubeconfig?: string;
  /** Of the kubeconfig; left out: its current one. */
  context?: string;
  /** In place of a kubeconfig: `https://…`, with a token or a client certificate. */
  server?: string;
  /** A file in PEM; left out: the server's certificate is one that everyone trusts. */
  certificateAuthority?: string;
  tokenFile?: string;
  clientCertificate?: string;
  clientKey?: string;
  /** `https://…` as people reach the API server; left out: as we do. */
  publicServer?: string;
  /** As the API server's `--oidc-username-prefix`: `-` is none; left out: none for email, else the issuer and `#`. */
  usernamePrefix?: string;
  /** The CephFilesystemSubVolumeGroup whose quota is the cluster's; left out: the one that there is. */
  subVolumeGroup?: string;
}

export const kubernetesFiles = [
  'kubeconfig',
  'certificateAuthority',
  'tokenFile',
  'clientCertificate',
  'clientKey',
] as const;

/** Throws `invalid_request` for a section that says too little to reach an API server, or two things at once. */
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
