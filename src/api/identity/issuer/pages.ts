/** The HTML of the issuer's own pages, their requests, and their responses, which all have the same security headers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { html, layout, problem, styleHash } from '../../../lib/pages.ts';
import { sendJson } from '../../../lib/response.ts';
import { clientAddress, type TrustedProxies } from '../../../lib/source-address.ts';

/** The email and password form. It never says which of the two was wrong. */
export function signInPage(page: {
  clientName: string;
  /** The form's target, and the hidden field with the request that it signs in for. */
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

/** Shows the program, its address and the code to compare: the only defence against an attacker's link (RFC 8628, 5.4). */
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

/** The page of any other error. `description` is plain text, as OAuth's `error_description`. */
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

/** No script (but for passkeys), no frame, nothing from other origins, forms to this origin only; no caching, no referrer. */
export const pageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src '${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

export function sendPage(
  res: ServerResponse,
  status: number,
  page: string,
  headers: Record<string, string> = {},
): void {
  res.writeHead(status, { ...pageHeaders, ...headers, 'Content-Length': Buffer.byteLength(page) });
  res.end(page);
}

export const retryHeaders = { 'Retry-After': '1' };

/** Answers 503: the service is unavailable at the moment, without the caller's fault. */
export function sendUnavailable(res: ServerResponse, message: string, as: 'page' | 'json'): void {
  const error = { error: 'temporarily_unavailable', error_description: message };
  if (as === 'json') sendJson(res, 503, error, retryHeaders);
  else sendPage(res, 503, messagePage('Try again in a moment', message), retryHeaders);
}

/** Redirects to another page of ours, with GET. `location` is a path. */
export function redirect(
  res: ServerResponse,
  location: string,
  headers: Record<string, string | string[]> = {},
): void {
  const { 'Content-Type': _none, ...rest } = pageHeaders;
  res.writeHead(303, { ...rest, ...headers, Location: location, 'Content-Length': 0 });
  res.end();
}

export const mostBodyBytes = 16 * 1024;

const addresses = new WeakMap<IncomingMessage, string>();

/** The source address of a request, as `pinToIssuer` saw it. */
export function remoteAddress(req: IncomingMessage): string {
  return addresses.get(req) ?? '';
}

/**
 * Rewrites a request's host and protocol to the issuer's own URL, regardless of the caller's or proxy's headers: the
 * library builds every URL that it returns from these headers.
 */
export function pinToIssuer(req: IncomingMessage, issuer: URL, proxies: TrustedProxies): void {
  addresses.set(req, clientAddress(proxies, req));
  req.headers.host = issuer.host;
  delete req.headers['x-forwarded-for'];
  delete req.headers.forwarded;
  delete req.headers['x-forwarded-host'];
  // The library reads it only if configured for a TLS proxy (`provider.proxy`).
  req.headers['x-forwarded-proto'] = issuer.protocol.replace(':', '');
}

/** The fields of a posted form; undefined for any other content, and for one larger than `mostBodyBytes`. */
export async function readForm(req: IncomingMessage): Promise<URLSearchParams | undefined> {
  const type = req.headers['content-type'] ?? '';
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req) {
    size += chunk.length;
    if (size > mostBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
}
