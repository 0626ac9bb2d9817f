/** How the page signs a person in: the facts its script needs, and the panel that it shows. */
import { text } from './html.ts';

export interface DocsSignIn {
  issuer: string;
  clientId: string;
  /** Undefined: the usual ones, and one for each audience (contract, "Authentication" 4). */
  scopes: readonly string[] | undefined;
  audiences: readonly string[];
}

/** Attributes for the page's script. `url` is where the API is meant to be called. */
export function sessionFacts(url: string, { issuer, clientId, scopes, audiences }: DocsSignIn): string {
  const usual = ['openid', 'profile', 'email'];
  const wanted = scopes ?? [...usual, ...audiences.map((one) => `urn:zitadel:iam:org:project:id:${one}:aud`)];
  // Nothing that outlives the page is asked for.
  const scope = wanted.filter((one) => one !== 'offline_access').join(' ');
  const facts = { url, issuer, client: clientId, scope };
  return Object.entries(facts)
    .map(([name, value]) => `data-${name}="${text(value)}"`)
    .join(' ');
}

/** Hidden until the script shows it: signing in here needs the script. */
export const sessionPanel = `<section class="session" id="session" aria-label="Sign-in" hidden>
<p id="who" role="status">Not signed in. Sign in to try a call: open an operation and fill in its form.</p>
<div id="device" hidden><p><a id="verify" target="_blank" rel="noopener noreferrer">Open the sign-in page</a> and compare the code that it shows:</p><p><code class="usercode" id="code"></code></p></div>
<button type="button" id="sign-in">Sign in</button><button type="button" class="second" id="sign-out" hidden>Sign out</button><button type="button" class="second" id="cancel" hidden>Cancel</button>
<details id="paste"><summary>Use an access token that you have</summary><form id="paste-form" autocomplete="off"><label for="token">Access token</label><input class="secret" id="token" required spellcheck="false" autocapitalize="off"><button>Use it</button></form></details>
</section>`;
