/** The form of email and password: the page that has it, and what it comes to when it is posted. */
import { DomainError } from '../../../domain/error.ts';
import type { PasswordAccount } from '../../../store/people/identities.ts';
import type { Browser } from './browser.ts';
import { type Exchange, type PagesContext, plural } from './exchange.ts';
import { signInPage } from './pages.ts';
import { sendPage } from './respond.ts';
import type { SignIn } from './sign-in.ts';

export type FormResult =
  | { outcome: 'signed_in'; account: PasswordAccount; browser: Browser; cookies: string[] }
  | { outcome: 'refused'; status: number; email: string; message: string; headers: Record<string, string> };

export async function signInWithForm(
  { browsers, knownBrowsers, signIn, log }: PagesContext,
  { address, known }: Exchange,
  form: URLSearchParams,
): Promise<FormResult> {
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
      log.info('issuer.sign_in', { address, userId: account.userId });
      const browser = browsers.signedIn(account);
      const cookies = [browsers.cookie(browser), knownBrowsers.cookie(known, account.userId)];
      return { outcome: 'signed_in', account, browser, cookies };
    }
  }
}

/** Sends the page with the form, or sends it again with what was `refused`. */
export function sendSignInForm(
  { browsers }: PagesContext,
  { res, browser }: Exchange,
  form: Pick<Parameters<typeof signInPage>[0], 'clientName' | 'action' | 'carried'>,
  refused?: FormResult & { outcome: 'refused' },
  headers: Record<string, string> = {},
): void {
  const { email, message, status = 200 } = refused ?? {};
  const page = signInPage({ ...form, csrf: browsers.csrf(browser), email, message });
  sendPage(res, status, page, { ...refused?.headers, ...headers, 'Set-Cookie': browsers.cookie(browser) });
}
