/** The kubeconfig for people: the cluster's address and the way to sign in, without any secret. */
import { present } from '../present.ts';

export interface KubeconfigFacts {
  clusterId: string;
  server: string;
  certificateAuthority?: string | undefined;
  tlsServerName?: string | undefined;
  /** The namespace that kubectl starts in; absent: the cluster's default. */
  namespace?: string | undefined;
  issuer: string;
  clientId: string;
  /** The issuer's certificate authority in PEM; absent: its certificate is publicly trusted. */
  issuerAuthority?: string | undefined;
  usernameClaim: string;
  /** The issuer gives refresh tokens for a scope (OpenID Connect Core 1.0, section 11). */
  staysSignedIn?: boolean;
}

/** The kubeconfig as an object. Its cluster, context and user are all named by the cluster's ID, so that kubeconfigs merge. */
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

/** The scopes that make the issuer send the claim (OpenID Connect Core 1.0, section 5.4); `openid` is always requested. */
function scopesFor({ usernameClaim: claim, staysSignedIn }: KubeconfigFacts): string[] {
  const stays = staysSignedIn ? ['offline_access'] : [];
  if (claim === 'sub') return stays;
  return [claim === 'email' || claim === 'email_verified' ? 'email' : 'profile', ...stays];
}
