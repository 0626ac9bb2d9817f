/** The issuer's own pages, as HTML. */
import { html, layout, problem } from '../../../lib/pages.ts';

/** Email and password. Which of the two was wrong is never said. */
export function signInPage(page: {
  clientName: string;
  /** Where the form goes, and what it carries of the sign-in that it is for. */
  action: string;
  carried: { name: string; value: string };
  csrf: string;
  email?: string | undefined;
  message?: string | undefined;
}): string {
  const typed = page.email !== undefined && page.email !== '';
  const focus = html` autofocus`;
  return layout(
    'Sign in',
    html`<h1>Sign in</h1>
<p class="soft">to continue to ${page.clientName}</p>
${problem(page.message)}
<form method="post" action="${page.action}">
<input type="hidden" name="csrf" value="${page.csrf}">
<input type="hidden" name="${page.carried.name}" value="${page.carried.value}">
<label for="email">Email</label>
<input id="email" name="email" type="email" value="${page.email ?? ''}" required maxlength="254"
 autocomplete="username" autocapitalize="none" spellcheck="false"${typed ? undefined : focus}>
<label for="password">Password</label>
<input id="password" name="password" type="password" required maxlength="1024"
 autocomplete="current-password"${typed ? focus : undefined}>
<button type="submit">Sign in</button>
</form>
<p class="small soft after"><a href="/password">Change your password</a></p>`,
  );
}

/** Who asks, from where, and the code to compare: the only defence against a link sent by an attacker (RFC 8628, 5.4). */
export function approvalPage(page: {
  clientName: string;
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

export function passwordPage(page: {
  csrf: string;
  email?: string | undefined;
  message?: string | undefined;
}): string {
  const field = (
    name: string,
    label: string,
    autocomplete: string,
  ) => html`<label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="password" required maxlength="1024" autocomplete="${autocomplete}">`;
  return layout(
    'Change your password',
    html`<h1>Change your password</h1>
<p class="soft">The new one has at least twelve characters: a few words that do not belong together will do. Everything that
is signed in with the old one is signed out, terminals too.</p>
${problem(page.message)}
<form method="post" action="/password">
<input type="hidden" name="csrf" value="${page.csrf}">
<label for="email">Email</label>
<input id="email" name="email" type="email" value="${page.email ?? ''}" required maxlength="254"
 autocomplete="username" autocapitalize="none" spellcheck="false">
${field('current', 'Current password', 'current-password')}
${field('next', 'New password', 'new-password')}
${field('again', 'New password again', 'new-password')}
<button type="submit">Change it</button>
</form>`,
  );
}

export function passwordChangedPage(): string {
  return layout(
    'Your password is changed',
    html`<h1>Your password is changed</h1>
<p class="soft">Everything that was signed in with the old one is signed out. In a terminal, run
<code>andromeda auth login</code> again.</p>`,
  );
}

/** Anything that has no page of its own. `description` is plain text, as OAuth's `error_description`. */
export function errorPage(error: string, description: string | undefined): string {
  if (error === 'server_error') {
    return messagePage(
      'Something went wrong',
      'This is our fault, and it is in the log. Try again in a moment.',
    );
  }
  return messagePage(
    'This did not work',
    `The request was refused: ${description ?? error.replaceAll('_', ' ')}.`,
  );
}

export function messagePage(title: string, message: string): string {
  return layout(
    title,
    html`<h1>${title}</h1>
<p class="soft">${message}</p>
<p class="small soft">To sign in a terminal, run <code>andromeda auth login</code> and open the link that it shows.</p>`,
  );
}
