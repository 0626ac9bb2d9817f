/**
 * A person's own account page (`/account`): second factor, recovery codes, password change, sign-out everywhere. Also
 * the page of an operator's password link (`/link?token=…`), which works once and for a day. Each action requires the
 * password again, which counts as a sign-in and has the same rate limits.
 */
import { DomainError } from '../../../../domain/error.ts';
import type { Person } from '../../../../domain/people/person.ts';
import { createRateLimiter, type RateLimiter } from '../../../../lib/limits.ts';
import { html, layout, problem } from '../../../../lib/pages.ts';
import { appendAuditEntry } from '../../../../store/audit/audit.ts';
import type { Store } from '../../../../store/engine/index.ts';
import {
  endSignIns,
  findPasswordOfUser,
  type PasswordAccount,
  setPassword,
} from '../../../../store/people/identities.ts';
import { findPerson } from '../../../../store/people/people.ts';
import {
  findPasswordLink,
  findSecondFactor,
  type SecondFactor,
  takePasswordLink,
} from '../../../../store/people/second-factors.ts';
import { hashNewPassword } from '../../password.ts';
import { type Exchange, type PagesContext, plural } from '../exchange.ts';
import { messagePage, passwordPage, redirect, sendPage } from '../pages.ts';
import { sendSignInForm, signInWithForm } from '../sign-in-form.ts';
import { ownEntry } from './second-factor.ts';
import { type Step, sendStep, stepOf } from './second-step.ts';

const form = {
  clientName: 'your account',
  action: '/account/sign-in',
  carried: { name: 'to', value: 'account' },
};

export function createAccountPage(context: PagesContext) {
  const { browsers } = context;

  async function show(exchange: Exchange, refusal?: { status: number; message: string }): Promise<void> {
    const account = await browsers.findAccount(exchange.browser);
    if (!account) return sendSignInForm(context, exchange, form);
    const factor = await findSecondFactor(context.store.read, account.userId);
    const page = accountPage({
      name: account.displayName,
      email: account.email,
      csrf: browsers.csrf(exchange.browser),
      factor,
      isAsked: await context.factors.isAsked(account.userId),
      message: refusal?.message,
    });
    sendPage(exchange.res, refusal?.status ?? 200, page);
  }

  return {
    show,
    async signIn(exchange: Exchange, fields: URLSearchParams): Promise<void> {
      const result = await signInWithForm(context, exchange, fields);
      if (result.outcome !== 'signed_in') return sendSignInForm(context, exchange, form, result);
      redirect(exchange.res, '/account', { 'Set-Cookie': result.cookies });
    },
    async post(exchange: Exchange, fields: URLSearchParams): Promise<void> {
      const account = await browsers.findAccount(exchange.browser);
      if (!account) return redirect(exchange.res, '/account');
      const { address, known: browser } = exchange;
      const password = fields.get('password') ?? '';
      const result = await context.signIn({ email: account.email, password, address, browser });
      if (result.outcome === 'wait') {
        const message = `Too many wrong passwords. Wait ${plural(result.seconds, 'second')} and try again.`;
        return show(exchange, { status: 429, message });
      }
      if (result.outcome === 'wrong')
        return show(exchange, { status: 403, message: 'The password is wrong.' });
      const step = await act(context, exchange, account, fields.get('do') ?? '');
      if (!step) return redirect(exchange.res, '/account');
      sendStep(exchange.res, { ...form, csrf: browsers.csrf(exchange.browser), step });
    },
  };
}

async function act(
  context: PagesContext,
  exchange: Exchange,
  account: PasswordAccount,
  what: string,
): Promise<Step | undefined> {
  const { factors, log } = context;
  const { userId } = account;
  const { address } = exchange;
  log.info('issuer.account', { address, userId, what: what.slice(0, 20) });
  if (what === 'setup') {
    const before = (await findSecondFactor(context.store.read, userId))?.since;
    return stepOf(context, exchange, account, { stage: 'setup', before });
  }
  if (what === 'codes') {
    const codes = await factors.renewCodes(userId, address);
    return codes && stepOf(context, exchange, account, { stage: 'codes', codes });
  }
  if (what.startsWith('remove ')) await factors.remove(userId, what.slice(7), address);
  if (what === 'sign-out') await signOutEverywhere(context, account, address);
  return undefined;
}

/** Ends the sign-ins of browsers and terminals, including this one. */
function signOutEverywhere({ store }: PagesContext, { userId }: PasswordAccount, address: string) {
  return store.write(async (tx) => {
    await endSignIns(tx, userId);
    await appendAuditEntry(tx, { ...ownEntry(userId, address), operation: 'signOutEverywhere' });
  });
}

function accountPage(page: {
  name: string;
  email: string;
  csrf: string;
  factor: SecondFactor | undefined;
  isAsked: boolean;
  message?: string | undefined;
}): string {
  const { factor, isAsked } = page;
  const doing = (value: string, label: string) =>
    html`<button class="second" type="submit" name="do" value="${value}">${label}</button>`;
  const { passkeys = [] } = factor ?? {};
  const kept = passkeys.map(({ id, since }) => ({ id, label: `passkey of ${since.slice(0, 10)}` }));
  if (factor?.sealed) kept.unshift({ id: 'app', label: 'authenticator app' });
  const names = kept.map(({ label }) => label).join(', ');
  const state = factor ? `${names}; ${factor.recovery.length} recovery codes left` : 'off';
  const removable = isAsked && kept.length < 2 ? [] : kept;
  return layout(
    'Your account',
    html`<h1>Your account</h1>
<dl>
<dt>Name</dt><dd>${page.name}</dd>
<dt>Email</dt><dd>${page.email}</dd>
<dt>Second factor</dt><dd>${state}</dd>
</dl>
${problem(page.message)}
<p><a href="/password">Change your password</a></p>
<form method="post" action="/account">
<input type="hidden" name="csrf" value="${page.csrf}">
<label for="password">Password, for each of these</label>
<input id="password" name="password" type="password" required maxlength="1024" autocomplete="current-password">
${doing('setup', factor ? 'Set up another app or passkey' : 'Set up a second factor')}
${factor ? doing('codes', 'New recovery codes') : undefined}
${removable.map(({ id, label }) => doing(`remove ${id}`, `Remove the ${label}`))}
${doing('sign-out', 'Sign out everywhere')}
</form>
<p class="small soft after">Browsers that are signed in to the console, and open SSH sessions, are on its page “Sessions”.</p>`,
  );
}

function linkPage(page: {
  csrf: string;
  token: string;
  email: string;
  message?: string | undefined;
}): string {
  const field = (name: string, label: string) => html`<label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="password" required maxlength="1024" autocomplete="new-password">`;
  return layout(
    'Set your password',
    html`<h1>Set your password</h1>
<p class="soft">At least twelve characters: a few words that do not belong together will do. What is signed in with an
earlier password is signed out.</p>
${problem(page.message)}
<form method="post" action="/link">
<input type="hidden" name="csrf" value="${page.csrf}">
<input type="hidden" name="token" value="${page.token}">
<label for="email">Email</label>
<input id="email" name="email" type="email" value="${page.email}" readonly autocomplete="username">
${field('next', 'New password')}
${field('again', 'New password again')}
<button type="submit">Set it</button>
</form>`,
  );
}

const ended = messagePage(
  'This link is good no more',
  'It was used, has been replaced, or is older than a day. Ask the people who run this installation for another one.',
);

export function createLinkPage(context: PagesContext) {
  const { browsers } = context;

  function send({ res, browser }: Exchange, token: string, { email }: Person, error?: DomainError): void {
    const page = linkPage({ csrf: browsers.csrf(browser), token, email, message: error?.message });
    const status = error === undefined ? 200 : error.code === 'service_unavailable' ? 503 : 422;
    sendPage(res, status, page, { 'Set-Cookie': browsers.cookie(browser) });
  }

  return {
    /** Viewing does not use the link up: mail scanners follow links. */
    async show(exchange: Exchange): Promise<void> {
      const token = tokenIn(exchange.url.searchParams);
      const person = await personOf(context, token);
      if (person) send(exchange, token, person);
      else sendPage(exchange.res, 410, ended);
    },
    async post(exchange: Exchange, form: URLSearchParams): Promise<void> {
      const token = tokenIn(form);
      const person = await personOf(context, token);
      if (!person) return sendPage(exchange.res, 410, ended);
      const password = form.get('next') ?? '';
      if (password !== form.get('again'))
        return send(
          exchange,
          token,
          person,
          new DomainError('invalid_parameter', 'The two passwords differ.'),
        );
      let hash: string;
      try {
        hash = await hashNewPassword(password, person);
      } catch (error) {
        if (!(error instanceof DomainError)) throw error;
        return send(exchange, token, person, error);
      }
      if (!(await take(context, { token, hash, person, address: exchange.address })))
        return sendPage(exchange.res, 410, ended);
      redirect(exchange.res, '/password/changed');
    },
  };
}

function tokenIn(form: URLSearchParams): string {
  return (form.get('token') ?? '').slice(0, 200);
}

async function personOf({ store, now }: PagesContext, token: string): Promise<Person | undefined> {
  const userId = await findPasswordLink(store.read, token, now());
  const person = userId === undefined ? undefined : await findPerson(store.read, userId);
  return person?.lifecycleState === 'active' ? person : undefined;
}

function take(
  { store, now }: PagesContext,
  { token, hash, person, address }: { token: string; hash: string; person: Person; address: string },
): Promise<boolean> {
  const userId = person.id;
  return store.write(async (tx) => {
    // The person may have been deactivated, or the link replaced or used, while the password was hashed.
    const isGood =
      (await findPasswordLink(tx.db, token, now())) === userId &&
      (await findPerson(tx.db, userId))?.lifecycleState === 'active';
    if (!isGood || !(await takePasswordLink(tx, token))) return false;
    await setPassword(tx, { userId, hash });
    await appendAuditEntry(tx, { ...ownEntry(userId, address), operation: 'usePasswordLink' });
    return true;
  });
}

interface Refusal {
  status: number;
  message: string;
  seconds?: number;
}

export function createPasswordPage(context: PagesContext) {
  const { browsers, knownBrowsers, uptime } = context;
  // Each change is a write and an audit entry.
  const changes = createRateLimiter({ burst: 5, everyMs: 60_000 }, uptime);

  function send({ res, browser }: Exchange, email: string | undefined, refusal?: Refusal): void {
    const page = passwordPage({ csrf: browsers.csrf(browser), email, message: refusal?.message });
    const retry = refusal?.seconds === undefined ? {} : { 'Retry-After': String(refusal.seconds) };
    sendPage(res, refusal?.status ?? 200, page, { ...retry, 'Set-Cookie': browsers.cookie(browser) });
  }

  return {
    async show(exchange: Exchange): Promise<void> {
      send(exchange, (await browsers.findAccount(exchange.browser))?.email);
    },
    async post(exchange: Exchange, form: URLSearchParams): Promise<void> {
      const own = await browsers.findAccount(exchange.browser);
      const outcome = await change(context, changes, exchange, form).catch((error): Refusal => {
        const status = error instanceof DomainError ? statuses.get(error.code) : undefined;
        if (status === undefined) throw error;
        return { status, message: error.message, ...(status === 503 && { seconds: 5 }) };
      });
      if ('message' in outcome) return send(exchange, (form.get('email') ?? '').slice(0, 254), outcome);
      // The second factor counts only if the browser's session is this person's and still valid; it may be another person's.
      const { hasFactor = false } = exchange.browser;
      const cookies = [
        browsers.cookie(browsers.signedIn(outcome, hasFactor && own?.userId === outcome.userId)),
        knownBrowsers.cookie(exchange.known, outcome.userId),
      ];
      redirect(exchange.res, '/password/changed', { 'Set-Cookie': cookies });
    },
  };
}

async function change(
  { store, browsers, factors, signIn, log }: PagesContext,
  changes: RateLimiter,
  { address, browser: present, known: browser }: Exchange,
  form: URLSearchParams,
): Promise<PasswordAccount | Refusal> {
  const [email = '', current = '', next = '', again = ''] = ['email', 'current', 'next', 'again'].map(
    (name) => form.get(name) ?? '',
  );
  if (next !== again) return { status: 422, message: 'The two new passwords are not the same.' };
  if (next === current) return { status: 422, message: 'The new password is the current one.' };
  const result = await signIn({ email, password: current, address, browser });
  if (result.outcome === 'wait') return tooMany('wrong passwords', result.seconds);
  if (result.outcome === 'wrong') {
    log.warn('issuer.sign_in.refused', { address });
    return { status: 403, message: 'The email or password is wrong.' };
  }
  const { account } = result;
  const own = await browsers.findAccount(present);
  if (own?.userId !== account.userId && (await factors.neededBy(account.userId)) !== 'nothing')
    return { status: 403, message: 'Sign in at /account first: this takes your second factor as well.' };
  const wait = Math.ceil(changes.waitMs(account.userId) / 1000);
  if (wait > 0) return tooMany('changes', wait);
  const hash = await hashNewPassword(next, account);
  const changed = await replace(store, { account, hash, address });
  if (!changed) return { status: 409, message: 'The password was changed meanwhile. Try again.' };
  changes.use(account.userId);
  log.info('issuer.password.changed', { address, userId: account.userId });
  return changed;
}

const statuses = new Map([
  ['invalid_parameter', 422],
  ['service_unavailable', 503],
]);

function tooMany(what: string, seconds: number): Refusal {
  return {
    status: 429,
    message: `Too many ${what}. Wait ${plural(seconds, 'second')} and try again.`,
    seconds,
  };
}

function replace(
  store: Store,
  { account, hash, address }: { account: PasswordAccount; hash: string; address: string },
): Promise<PasswordAccount | undefined> {
  const { userId } = account;
  return store.write(async (tx) => {
    const present = await findPasswordOfUser(tx.db, userId);
    if (present?.passwordHash !== account.passwordHash) return undefined;
    await setPassword(tx, { userId, hash });
    await appendAuditEntry(tx, { ...ownEntry(userId, address), operation: 'changeOwnPassword' });
    return findPasswordOfUser(tx.db, userId);
  });
}
