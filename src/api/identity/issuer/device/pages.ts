/**
 * The person's half of the device flow (RFC 8628, section 3.3), with our own pages, not the library's:
 *
 *     GET /device                the code page
 *     GET /device?user_code=…    the sign-in page, or, signed in, the approval page; changes nothing, so that
 *                                opening it twice, or by a mail scanner, does not use the code up
 *     POST /device/sign-in, /device/approval, /device/sign-out       → 303 to one of the pages
 *     GET /device/approved, /device/denied                           the last pages
 *     GET, POST /password, GET /password/changed                     account-page.ts
 *     GET /auth, POST /auth/sign-in, GET /session/end                authorization.ts
 *
 * The library's own pages send their forms with a script, ask for approval before the sign-in, and mark a code as
 * used as soon as it is opened.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hasNul, visibleName } from '../../../../domain/text.ts';
import type { Limit } from '../../../../lib/limits.ts';
import { html, layout, problem } from '../../../../lib/pages.ts';
import { sourceNetwork } from '../../../../lib/source-address.ts';
import { createAccountPage, createLinkPage, createPasswordPage } from '../account/account-page.ts';
import { librarySeconds } from '../adapter.ts';
import { createAuthorizationPages } from '../authorization.ts';
import { apiResource } from '../clients.ts';
import { type Exchange, type PagesContext, plural } from '../exchange.ts';
import {
  approvalPage,
  messagePage,
  passwordChangedPage,
  readForm,
  redirect,
  remoteAddress,
  sendPage,
} from '../pages.ts';
import { sendSignInForm, signInWithForm, type Unfinished } from '../sign-in-form.ts';
import {
  approveDevice,
  denyDevice,
  displayUserCode,
  findDevice,
  normalizeUserCode,
  type WaitingDevice,
} from './device.ts';

const check = html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="M5 12.5l4.5 4.5L19 7.5"/></svg>`;
const cross = html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" aria-hidden="true"><path d="M7 7l10 10M17 7L7 17"/></svg>`;

function approvedPage(): string {
  return layout(
    'You are signed in',
    html`<div class="sign good">${check}</div>
<h1>You are signed in</h1>
<p class="soft">You can close this window and go back to your terminal.</p>`,
  );
}

function deniedPage(): string {
  return layout(
    'Sign-in denied',
    html`<div class="sign bad">${cross}</div>
<h1>Sign-in denied</h1>
<p class="soft">The device that asked gets no access. You can close this window.</p>
<p class="small soft">If you did not start this yourself, tell the people who run this installation that somebody sent
you the link.</p>`,
  );
}

/** The page where a person types the code from their terminal (RFC 8628, section 3.3). */
function codePage({ message }: { message?: string | undefined }): string {
  return layout(
    'Enter the code',
    html`<h1>Enter the code</h1>
<p class="soft">Your terminal shows a code of eight letters.</p>
${problem(message)}
<form method="get" action="/device">
<label for="user_code">Code</label>
<input class="code" id="user_code" name="user_code" placeholder="BCDF-GHJK" required maxlength="20" autofocus
 autocomplete="off" autocapitalize="characters" spellcheck="false">
<button type="submit">Continue</button>
</form>`,
  );
}

const guesses: Limit = { name: 'wrong user codes', rate: { burst: 60, everyMs: 1000 } };

export type DevicePages = (req: IncomingMessage, res: ServerResponse, url: URL) => Promise<boolean>;

const again = 'Run the command again to get a new one.';
const problems = {
  unknown: { status: 404, message: `We do not know this code. Check what your terminal shows. ${again}` },
  expired: { status: 410, message: `This code has expired. ${again}` },
  answered: { status: 410, message: `This code has already been used. ${again}` },
};

export function createDevicePages(context: PagesContext): DevicePages {
  const { browsers, knownBrowsers } = context;
  const password = createPasswordPage(context);
  const authorization = createAuthorizationPages(context);
  const ownAccount = createAccountPage(context);
  const link = createLinkPage(context);

  const posts = new Map<string, Post>([
    ['/device/sign-in', (exchange, form) => postSignIn(context, exchange, form)],
    ['/device/approval', (exchange, form) => postApproval(context, exchange, form)],
    ['/device/sign-out', (exchange, form) => postSignOut(context, exchange, form)],
    ['/password', password.post],
    ['/auth/sign-in', authorization.post],
    ['/account/sign-in', ownAccount.signIn],
    ['/account', ownAccount.post],
    ['/link', link.post],
  ]);

  const pages = new Map<string, (exchange: Exchange) => Promise<void> | void>([
    ['/device', (exchange) => showDevice(context, exchange)],
    ['/device/approved', ({ res }) => sendPage(res, 200, approvedPage())],
    ['/device/denied', ({ res }) => sendPage(res, 200, deniedPage())],
    ['/password', password.show],
    ['/password/changed', ({ res }) => sendPage(res, 200, passwordChangedPage())],
    ['/account', ownAccount.show],
    ['/link', link.show],
  ]);

  return async (req, res, url) => {
    const exchange = {
      req,
      res,
      url,
      browser: browsers.of(req),
      known: knownBrowsers.of(req),
      address: remoteAddress(req),
    };
    if (req.method === 'POST') {
      const post = posts.get(url.pathname);
      if (!post) return false;
      await takeForm(context, exchange, post);
      return true;
    }
    if (req.method !== 'GET' && req.method !== 'HEAD') return false;
    const show = pages.get(url.pathname) ?? authorization.show;
    return (await show(exchange)) !== false;
  };
}

type Post = (exchange: Exchange, form: URLSearchParams) => Promise<void>;

/** Accepts a form only if it is ours and from this browser, and passes it to `post`. */
async function takeForm({ browsers }: PagesContext, exchange: Exchange, post: Post): Promise<void> {
  const { req, res } = exchange;
  const form = await readForm(req);
  if (form && [...form].flat().some(hasNul)) {
    const message = 'A field of this form has a NUL character, which no text here can have.';
    sendPage(res, 400, messagePage('Try again', `${message} Go back, and type it again.`));
  } else if (!form || !isSameOrigin(req) || !browsers.isOwnForm(exchange.browser, form.get('csrf'))) {
    const message =
      'This form is not one of ours or too old. Go back, reload the page and try again; cookies must be allowed for this address.';
    sendPage(res, 403, messagePage('Try again', message));
  } else await post(exchange, form);
}

/** The waiting device of a typed code; if there is none, sends a page with the reason and returns undefined. */
async function waitingDevice(
  context: PagesContext,
  exchange: Exchange,
  typed: string,
): Promise<WaitingDevice | undefined> {
  const { store, clients, limits } = context;
  // A browser with earlier sign-ins is limited by its own guesses only.
  const key = exchange.known?.userIds[0] ?? sourceNetwork(exchange.address);
  const counted = { guess: { limit: guesses, key } };
  // Counted before the lookup, so that concurrent guesses count too.
  const waitMs = await limits.change(counted, ({ guess }) => {
    const ms = guess.waitMs();
    if (ms === 0) guess.use();
    return ms;
  });
  if (waitMs > 0) {
    const wait = Math.ceil(waitMs / 1000);
    const message = `Too many wrong codes. Wait ${plural(wait, 'second')} and try again.`;
    sendPage(exchange.res, 429, codePage({ message }), { 'Retry-After': String(wait) });
    return undefined;
  }
  const found = await findDevice(store.read, clients, normalizeUserCode(typed), librarySeconds());
  // Guessing the code of another person's device would sign that device in as the guesser (RFC 8628, section 5.1).
  if (found.state !== 'unknown') await limits.change(counted, ({ guess }) => guess.undo());
  if (found.state === 'waiting') return found.device;
  const { status, message } = problems[found.state];
  sendPage(exchange.res, status, codePage({ message }));
  return undefined;
}

function sendSignIn(
  context: PagesContext,
  exchange: Exchange,
  device: WaitingDevice,
  result?: Unfinished,
): void {
  const carried = { name: 'user_code', value: displayUserCode(device.userCode) };
  const form = { clientName: device.client.name, action: '/device/sign-in', carried };
  sendSignInForm(context, exchange, form, result);
}

async function showDevice(context: PagesContext, exchange: Exchange): Promise<void> {
  const { browsers } = context;
  const typed = exchange.url.searchParams.get('user_code') ?? '';
  if (typed.trim() === '') return sendPage(exchange.res, 200, codePage({}));
  const device = await waitingDevice(context, exchange, typed);
  if (!device) return;
  const account = await browsers.findAccount(exchange.browser);
  if (!account) return sendSignIn(context, exchange, device);
  const page = approvalPage({
    clientName: device.client.name,
    platform: platformOf(device),
    meaning: device.client.meaning,
    userCode: displayUserCode(device.userCode),
    address: device.address,
    program: visibleName(device.program, 200),
    asked: ago(librarySeconds() - device.askedAt),
    name: visibleName(account.displayName),
    email: account.email,
    csrf: browsers.csrf(exchange.browser),
  });
  sendPage(exchange.res, 200, page);
}

async function postSignIn(context: PagesContext, exchange: Exchange, form: URLSearchParams): Promise<void> {
  const device = await waitingDevice(context, exchange, form.get('user_code') ?? '');
  if (!device) return;
  const result = await signInWithForm(context, exchange, form);
  if (result.outcome === 'signed_in') {
    return redirect(exchange.res, devicePath(device.userCode), { 'Set-Cookie': result.cookies });
  }
  sendSignIn(context, exchange, device, result);
}

async function postApproval(context: PagesContext, exchange: Exchange, form: URLSearchParams): Promise<void> {
  const { store, browsers, log } = context;
  const device = await waitingDevice(context, exchange, form.get('user_code') ?? '');
  if (!device) return;
  const account = await browsers.findAccount(exchange.browser);
  if (!account) return redirect(exchange.res, devicePath(device.userCode));
  const { userId } = account;
  const isApproved = form.get('decision') === 'approve';
  const counts = isApproved
    ? await approveDevice(context, device, { account, browser: exchange.browser }, librarySeconds())
    : await denyDevice(store, device.userCode, librarySeconds());
  if (!counts) {
    const { status, message } = problems.answered;
    return sendPage(exchange.res, status, codePage({ message }));
  }
  log.info(isApproved ? 'issuer.device.approved' : 'issuer.device.denied', {
    userId,
    clientId: device.client.id,
    address: exchange.address,
    deviceAddress: device.address,
  });
  redirect(exchange.res, isApproved ? '/device/approved' : '/device/denied');
}

async function postSignOut(
  context: PagesContext,
  { res, browser }: Exchange,
  form: URLSearchParams,
): Promise<void> {
  const { browsers } = context;
  await browsers.end(browser);
  const cookie = browsers.cookie(browsers.fresh());
  redirect(res, devicePath(form.get('user_code') ?? ''), { 'Set-Cookie': cookie });
}

/** Browsers send Sec-Fetch-Site over TLS and on loopback only; the CSRF token is the actual proof. */
function isSameOrigin(req: IncomingMessage): boolean {
  const site = req.headers['sec-fetch-site'];
  return site === undefined || site === 'same-origin';
}

function devicePath(userCode: string): string {
  return `/device?user_code=${encodeURIComponent(displayUserCode(normalizeUserCode(userCode)))}`;
}

/** The API that the tokens are for, as shown for approval; a program without one may have been sent by any server. */
function platformOf({ client, resource }: WaitingDevice): string | undefined {
  if (!client.callsApis) return undefined;
  return resource === apiResource ? 'not named by the program' : resource;
}

function ago(seconds: number): string {
  return seconds < 60 ? 'just now' : `${plural(Math.floor(seconds / 60), 'minute')} ago`;
}
