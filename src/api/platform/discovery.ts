/** How a client finds the issuer and what a token must carry (contract, "Authentication"; RFC 9728). */
import type { Operation } from './operation.ts';

/** The discovery document; the one operation that needs no token. */
export const getProtectedResource: Operation<'getProtectedResource'> = async ({ signIn }) => ({
  resource: signIn.platformUrl,
  authorization_servers: [signIn.issuer],
  svc_audiences: [...signIn.audiences],
  svc_business_url: signIn.businessUrl,
  svc_cli_client_id: signIn.cliClientId,
  ...(signIn.scopes ? { svc_scopes: [...signIn.scopes] } : {}),
  bearer_methods_supported: ['header'],
});
