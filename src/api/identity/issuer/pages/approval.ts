import { html } from '../../../../lib/pages/html.ts';
import { layout } from '../../../../lib/pages/layout.ts';

/** Who asks, from where, and the code to compare: the only defence against a link sent by an attacker (RFC 8628, 5.4). */
export function approvalPage(page: {
  clientName: string;
  /** Which platform the tokens are for; undefined where they are for none. */
  platform: string | undefined;
  meaning: string;
  userCode: string;
  address: string;
  program: string;
  asked: string;
  name: string;
  email: string;
  csrf: string;
}): string {
  const hidden = html`<input type="hidden" name="csrf" value="${page.csrf}">
<input type="hidden" name="user_code" value="${page.userCode}">`;
  return layout(
    'Approve this sign-in?',
    html`<h1>Approve this sign-in?</h1>
<p class="soft">Approve only if you started it yourself and your terminal shows this same code.</p>
<strong class="usercode">${page.userCode}</strong>
<dl>
<dt>Client</dt><dd>${page.clientName}</dd>
${
  page.platform === undefined
    ? undefined
    : html`<dt>Platform</dt><dd>${page.platform}</dd>
`
}<dt>Address</dt><dd>${page.address}</dd>
<dt>Program</dt><dd>${page.program}</dd>
<dt>Asked</dt><dd>${page.asked}</dd>
</dl>
<p class="small soft">${page.meaning}</p>
<form method="post" action="/device/approval">
${hidden}
<div class="choice">
<button class="second" type="submit" name="decision" value="deny">Deny</button>
<button type="submit" name="decision" value="approve">Approve</button>
</div>
</form>
<form class="who" method="post" action="/device/sign-out">
${hidden}
<span>Signed in as ${page.name} (${page.email})</span>
<button class="link" type="submit">Not you?</button>
<a href="/password">Change your password</a>
</form>`,
  );
}
