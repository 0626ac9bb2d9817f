/** The kubeconfig that people get: it says where the cluster is and how to sign in, and holds nothing secret. */
import { present } from '../present.ts';

export interface KubeconfigFacts {
  clusterId: string;
  server: string;
  certificateAuthority?: string | undefined;
  tlsServerName?: string | undefined;
  /** The namespace that kubectl begins in; left out: the cluster's default. */
  namespace?: string | undefined;
  issuer: string;
  clientId: string;
  /** PEM, of the issuer; left out: its certificate is one that everyone trusts. */
  issuerAuthority?: string | undefined;
  usernameClaim: string;
  /** The issuer gives refresh tokens for a scope (OpenID Connect Core 1.0, section 11). */
  staysSignedIn?: boolean;
}

/** The file as data. Its cluster, context and user are all called by the cluster's ID, so that files merge. */
export function kubeconfig(facts: KubeconfigFacts) {
  const { clusterId: name, server, certificateAuthority, namespace, issuer, clientId } = facts;
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name,
        cluster: {
          server,
          ...present({
            'certificate-authority-data': base64(certificateAuthority),
            'tls-server-name': facts.tlsServerName,
          }),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name, ...present({ namespace }) } }],
    'current-context': name,
    users: [
      {
        name,
        user: {
          exec: {
            apiVersion: 'client.authentication.k8s.io/v1',
            command: 'kubectl',
            args: [
              'oidc-login',
              'get-token',
              `--oidc-issuer-url=${issuer}`,
              `--oidc-client-id=${clientId}`,
              ...(facts.issuerAuthority === undefined
                ? []
                : [`--certificate-authority-data=${base64(facts.issuerAuthority)}`]),
              ...scopesFor(facts).map((scope) => `--oidc-extra-scope=${scope}`),
              '--grant-type=device-code',
            ],
            interactiveMode: 'IfAvailable',
            installHint:
              'Signing in needs the kubectl plugin oidc-login: kubectl krew install oidc-login (https://github.com/int128/kubelogin).',
          },
        },
      },
    ],
  };
}

function base64(text: string | undefined): string | undefined {
  return text && Buffer.from(text).toString('base64');
}

/** Those that bring the claim (OpenID Connect Core 1.0, section 5.4); `openid` is always asked for. */
function scopesFor({ usernameClaim: claim, staysSignedIn }: KubeconfigFacts): string[] {
  const stays = staysSignedIn ? ['offline_access'] : [];
  if (claim === 'sub') return stays;
  return [claim === 'email' || claim === 'email_verified' ? 'email' : 'profile', ...stays];
}
