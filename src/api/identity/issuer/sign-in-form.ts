/** The sign-in form (email and password) and the second step: their pages, and the results of posting them. */
import { DomainError } from '../../../domain/error.ts';
import type { PasswordAccount } from '../../../store/people/identities.ts';
import { beginStep, type Step, sendStep, takeStep } from './account/second-step.ts';
import type { Browser } from './browser.ts';
import { type Exchange, type PagesContext, plural } from './exchange.ts';
import { sendPage, signInPage } from './pages.ts';
import type { SignIn } from './sign-in.ts';

export type FormResult =
  | { outcome: 'signed_in'; account: PasswordAccount; browser: Browser; cookies: string[] }
  | Unfinished;

/** The sign-in is incomplete, and another page follows. */
export type Unfinished =
  | { outcome: 'refused'; status: number; email: string; message: string; headers: Record<string, string> }
  | { outcome: 'step'; step: Step };

export async function signInWithForm(
  context: PagesContext,
  exchange: Exchange,
  form: URLSearchParams,
): Promise<FormResult> {
  if (!form.has('proven')) return takePassword(context, exchange, form);
  const result = await takeStep(context, exchange, form);
  if (result === undefined) {
    const message = 'That took too long, or was begun in another browser. Sign in again.';
    return { outcome: 'refused', status: 403, email: '', message, headers: {} };
  }
  if ('step' in result) return { outcome: 'step', step: result.step };
  return signedIn(context, exchange, result.account, true);
}

function signedIn(
  { browsers, knownBrowsers, log }: PagesContext,
  { address, known }: Exchange,
  account: PasswordAccount,
  hasFactor: boolean,
): FormResult {
  log.info('issuer.sign_in', { address, userId: account.userId, hasFactor });
  const browser = browsers.signedIn(account, hasFactor);
  const cookies = [browsers.cookie(browser), knownBrowsers.cookie(known, account.userId)];
  return { outcome: 'signed_in', account, browser, cookies };
}

async function takePassword(
  context: PagesContext,
  exchange: Exchange,
  form: URLSearchParams,
): Promise<FormResult> {
  const { signIn, log } = context;
  const { address, known } = exchange;
  const email = (form.get('email') ?? '').slice(0, 254);
  const refused = (status: number, message: string, seconds?: number): FormResult => {
    const headers: Record<string, string> = seconds === undefined ? {} : { 'Retry-After': String(seconds) };
    return { outcome: 'refused', status, email, message, headers };
  };
  let result: Awaited<ReturnType<SignIn>>;
  try {
    result = await signIn({ email, password: form.get('password') ?? '', address, browser: known });
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'service_unavailable') throw error;
    return refused(503, error.message, 5);
  }
  switch (result.outcome) {
    case 'wait': {
      const { seconds } = result;
      log.warn('issuer.sign_in.throttled', { address, seconds });
      return refused(
        429,
        `Too many wrong passwords. Wait ${plural(seconds, 'second')} and try again.`,
        seconds,
      );
    }
    case 'wrong':
      log.warn('issuer.sign_in.refused', { address });
      return refused(403, 'The email or password is wrong.');
    case 'signed_in': {
      const { account } = result;
      const step = await beginStep(context, exchange, account);
      return step ? { outcome: 'step', step } : signedIn(context, exchange, account, false);
    }
  }
}

/** Sends the sign-in form, or the page that follows an incomplete sign-in. */
export function sendSignInForm(
  { browsers }: PagesContext,
  { res, browser }: Exchange,
  form: Pick<Parameters<typeof signInPage>[0], 'clientName' | 'action' | 'carried'>,
  result?: Unfinished,
  headers: Record<string, string> = {},
): void {
  const csrf = browsers.csrf(browser);
  const cookie = { 'Set-Cookie': browsers.cookie(browser) };
  if (result?.outcome === 'step') {
    const { step } = result;
    sendStep(res, { ...form, csrf, step }, { ...headers, ...cookie });
    return;
  }
  const { email, message, status = 200 } = result ?? {};
  const page = signInPage({ ...form, csrf, email, message });
  sendPage(res, status, page, { ...result?.headers, ...headers, ...cookie });
}
