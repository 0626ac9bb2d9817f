/** The page where people change their own password: the current one counts as a sign-in does, with the same throttles. */
import { DomainError } from '../../../../domain/error.ts';
import { createRateLimiter, type RateLimiter } from '../../../../lib/limits.ts';
import { appendAuditEntry } from '../../../../store/audit/audit.ts';
import type { Store } from '../../../../store/engine/index.ts';
import {
  findPasswordOfUser,
  type PasswordAccount,
  setPassword,
} from '../../../../store/people/identities.ts';
import { hashNewPassword } from '../../password.ts';
import { type Exchange, type PagesContext, plural } from '../exchange.ts';
import { passwordPage } from '../pages.ts';
import { redirect, sendPage } from '../respond.ts';
import { ownEntry } from './second-factor.ts';

interface Refusal {
  status: number;
  message: string;
  seconds?: number;
}

export function createPasswordPage(context: PagesContext) {
  const { browsers, knownBrowsers, uptime } = context;
  // Each is a write, and an entry in the audit trail.
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
      // Of this person, and as long as it counts: another one may have been signed in here, with theirs.
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

/** The account with its new password; undefined when it is not the one that was checked any more. */
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
