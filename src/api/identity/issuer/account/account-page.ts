/**
 * A person's own account at the issuer (`/account`): the second factor, recovery codes, and the end of everything that is signed in.
 * Each asks for the password anew, which counts as a sign-in does, with the same throttles.
 */
import { appendAuditEntry } from '../../../../store/audit/audit.ts';
import { endSignIns, type PasswordAccount } from '../../../../store/people/identities.ts';
import { findSecondFactor } from '../../../../store/people/second-factors.ts';
import { type Exchange, type PagesContext, plural } from '../exchange.ts';
import { redirect, sendPage } from '../respond.ts';
import { sendSignInForm, signInWithForm } from '../sign-in-form.ts';
import { accountPage } from './account-pages.ts';
import { sendStep } from './factor-pages.ts';
import { ownEntry } from './second-factor.ts';
import { type Step, stepOf } from './second-step.ts';

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

/** Does it; a page that comes next, where one does. */
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

/** Browsers and terminals, this one too. */
function signOutEverywhere({ store }: PagesContext, { userId }: PasswordAccount, address: string) {
  return store.write(async (tx) => {
    await endSignIns(tx, userId);
    await appendAuditEntry(tx, { ...ownEntry(userId, address), operation: 'signOutEverywhere' });
  });
}
