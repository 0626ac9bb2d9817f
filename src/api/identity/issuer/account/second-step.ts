/**
 * The step after the password: a code or a passkey, or setting one up. Nothing is stored in between: a hidden field
 * of the form carries the person whose password was right, encrypted and bound to this browser.
 */
import type { ServerResponse } from 'node:http';
import { renderSVG } from 'uqr';
import type { Limit } from '../../../../lib/limits.ts';
import { type Html, hashOfSource, html, layout, problem, trusted } from '../../../../lib/pages.ts';
import { seal, unseal } from '../../../../lib/secrets-key.ts';
import { findPasswordOfUser, type PasswordAccount } from '../../../../store/people/identities.ts';
import { findSecondFactor } from '../../../../store/people/second-factors.ts';
import { type Exchange, type PagesContext, plural } from '../exchange.ts';
import { pageHeaders, sendPage } from '../pages.ts';
import {
  type Answer,
  appAddress,
  askForNew,
  askForOne,
  mostPasskeys,
  newAppSecret,
  type PasskeyRequest,
  relyingPartyOf,
} from './second-factor.ts';

/** The next page: enter a code or use a passkey, set one up, or save the recovery codes, which completes the sign-in. */
type Stage = 'code' | 'setup' | 'codes';

export interface Step {
  stage: Stage;
  email: string;
  proven: string;
  secret?: string | undefined;
  hasApp: boolean;
  passkey?: PasskeyRequest | undefined;
  codes?: readonly string[] | undefined;
  status: number;
  message?: string | undefined;
}

/** What a browser has proven so far, valid until a time in ms since 1970. */
interface Proven {
  userId: string;
  generation: number;
  stage: Stage;
  secret?: string | undefined;
  challenge?: string | undefined;
  /** The `since` of the factor at the start; setting one up fails if another was set up meanwhile. */
  before?: string | undefined;
  until: number;
}

const stepMs = 10 * 60_000;
/** Posting the page of recovery codes completes the sign-in, so each such page is accepted only once. */
const once: Limit = { name: 'recovery codes shown', rate: { burst: 1, everyMs: stepMs } };
const purposeOf = ({ browser }: Exchange) => `second step of ${browser.nonce}`;

export async function beginStep(
  context: PagesContext,
  exchange: Exchange,
  account: PasswordAccount,
): Promise<Step | undefined> {
  const needed = await context.factors.neededBy(account.userId);
  return needed === 'nothing' ? undefined : stepOf(context, exchange, account, { stage: needed });
}

type StepResult = { account: PasswordAccount } | { step: Step } | undefined;

/** The account once everything is proven, else the next page. Undefined for a step that expired or began in another browser. */
export async function takeStep(
  context: PagesContext,
  exchange: Exchange,
  form: URLSearchParams,
): Promise<StepResult> {
  const { store, factors, stepSecret, log, now } = context;
  const sealed = (form.get('proven') ?? '').slice(0, 2_000);
  const proven = unseal(sealed, stepSecret, purposeOf(exchange)) as Proven | undefined;
  if (!proven || proven.until <= now()) return undefined;
  const account = await findPasswordOfUser(store.read, proven.userId);
  if (!account || account.passwordGeneration !== proven.generation) return undefined;
  const { stage, secret, before } = proven;
  if (stage === 'codes') {
    const { limits } = context;
    const isFirst = await limits.change({ page: { limit: once, key: sealed.slice(-100) } }, ({ page }) => {
      const waitMs = page.waitMs();
      page.use();
      return waitMs === 0;
    });
    return isFirst ? { account } : undefined;
  }
  const answer = answerIn(form, proven);
  const again = async (status: number, message: string): Promise<StepResult> => {
    log.warn('issuer.second_factor.refused', { address: exchange.address, userId: account.userId });
    const step = await stepOf(context, exchange, account, { stage, secret, before });
    return { step: { ...step, status, message } };
  };
  if (stage === 'setup') {
    if ((await findSecondFactor(store.read, account.userId))?.since !== before) return undefined;
    const app = { app: secret ?? '', before };
    const codes = await factors.setUp(account.userId, app, answer, exchange.address);
    if (!codes)
      return again(403, 'code' in answer ? 'That is not the code that the app shows now.' : wrongPasskey);
    return { step: await stepOf(context, exchange, account, { stage: 'codes', codes }) };
  }
  const good = await factors.check(account.userId, answer);
  if (good === true) return { account };
  if (good === false)
    return again(
      403,
      'code' in answer ? 'The code is wrong, or was used before. Wait for the next one.' : wrongPasskey,
    );
  const wait = plural(Math.ceil(good / 1000), 'second');
  return again(429, `Too many wrong codes. Wait ${wait} and try again.`);
}

const wrongPasskey = 'That passkey is not good here, or took too long. Try again.';

function answerIn(form: URLSearchParams, { challenge, until }: Proven): Answer {
  const passkey = form.get('passkey');
  if (passkey && challenge !== undefined) return { passkey, challenge, until };
  return { code: (form.get('code') ?? '').trim().slice(0, 100) };
}

export async function stepOf(
  { store, issuer, stepSecret, now }: PagesContext,
  exchange: Exchange,
  { userId, email, passwordGeneration: generation }: PasswordAccount,
  { stage, secret, codes, before }: Pick<Step, 'stage' | 'secret' | 'codes'> & Pick<Proven, 'before'>,
): Promise<Step> {
  const app = stage === 'setup' ? (secret ?? newAppSecret()) : undefined;
  const { sealed: hasApp, passkeys = [] } = (await findSecondFactor(store.read, userId)) ?? {};
  const party = relyingPartyOf(issuer);
  let passkey: PasskeyRequest | undefined;
  if (party && stage === 'setup' && passkeys.length < mostPasskeys)
    passkey = await askForNew(party, { userId, email, passkeys });
  if (party && stage === 'code' && passkeys.length > 0) passkey = await askForOne(party, passkeys);
  const { challenge } = passkey?.options ?? {};
  const proven: Proven = { userId, generation, stage, secret: app, challenge, before, until: now() + stepMs };
  const sealed = seal(proven, stepSecret, purposeOf(exchange));
  const shown = { secret: app, passkey, codes, hasApp: hasApp !== undefined };
  return { stage, email, proven: sealed, ...shown, status: 200 };
}

interface StepPage {
  /** The form's target, and the hidden field with the request that it signs in for. */
  action: string;
  carried: { name: string; value: string };
  csrf: string;
  step: Step;
}

/** The only script of our pages: it requests a passkey, which HTML cannot. Hidden in browsers without passkeys. */
const script = `
const form = document.getElementById('passkey');
const said = document.getElementById('passkey-problem');
const { method, options } = JSON.parse(form.dataset.request);
const parse = method === 'create' ? 'parseCreationOptionsFromJSON' : 'parseRequestOptionsFromJSON';
form.hidden = !window.PublicKeyCredential?.[parse];
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  said.hidden = true;
  try {
    const publicKey = PublicKeyCredential[parse](options);
    form.elements.passkey.value = JSON.stringify(await navigator.credentials[method]({ publicKey }));
    form.submit();
  } catch (error) {
    said.textContent = 'That did not work. Your browser says: ' + error.message;
    said.hidden = false;
  }
});
`;
const scriptPolicy = `; script-src '${hashOfSource(script)}'`;

/** Sends the page with a policy that allows the script, in addition to `headers` or those of all pages. */
export function sendStep(res: ServerResponse, page: StepPage, headers: Record<string, string> = {}): void {
  const all = { ...pageHeaders, ...headers };
  all['Content-Security-Policy'] += scriptPolicy;
  sendPage(res, page.step.status, stepPage(page), all);
}

function stepPage({ action, carried, csrf, step }: StepPage): string {
  const form = (
    fields: Html,
    button: string,
    { isSecond = false, passkey = '' } = {},
  ) => html`<form method="post"
 action="${action}"${passkey === '' ? undefined : html` id="passkey" data-request="${passkey}" hidden`}>
<input type="hidden" name="csrf" value="${csrf}">
<input type="hidden" name="${carried.name}" value="${carried.value}">
<input type="hidden" name="proven" value="${step.proven}">
${fields}
<button${isSecond ? html` class="second"` : undefined} type="submit">${button}</button>
</form>`;
  const byPasskey = (button: string, isSecond: boolean) =>
    step.passkey &&
    html`${form(html`<input type="hidden" name="passkey">`, button, { isSecond, passkey: JSON.stringify(step.passkey) })}
<p class="message bad" role="alert" id="passkey-problem" hidden></p>
<script>${trusted(script)}</script>`;
  const code = (label: string, length: number) => html`<label for="code">${label}</label>
<input class="code" id="code" name="code" required maxlength="${length}" autofocus autocomplete="one-time-code"
 inputmode="${length > 10 ? 'text' : 'numeric'}" autocapitalize="none" spellcheck="false">`;
  if (step.stage === 'codes') return codesPage(step.codes ?? [], form);
  if (step.stage === 'setup') {
    const address = appAddress(step.secret ?? '', step.email);
    return layout(
      'Set up a second factor',
      html`<h1>Set up a second factor</h1>
<p class="soft">Add ${step.email} to an authenticator app: with this picture, or with the key below it.</p>
${problem(step.message)}
<div class="picture">${trusted(renderSVG(address, { border: 2 }))}</div>
<p class="small"><code>${(step.secret?.match(/.{1,4}/g) ?? []).join(' ')}</code></p>
${form(code('The code that the app shows now', 10), 'Set it up')}
${byPasskey('Use a passkey instead', true)}`,
    );
  }
  const kinds = step.hasApp ? 'The one that your authenticator app shows now, or one' : 'One';
  const isSecond = step.passkey !== undefined;
  return layout(
    isSecond ? 'Use your passkey' : 'Enter a code',
    html`<h1>${isSecond ? 'Use your passkey' : 'Enter a code'}</h1>
${problem(step.message)}
${byPasskey('Use your passkey', false)}
<p class="soft after">${isSecond ? 'Or a code. ' : undefined}${kinds} of your recovery codes.</p>
${form(code('Code', 40), 'Continue', { isSecond })}
<p class="small soft after">None of these? Ask the people who run this installation.</p>`,
  );
}

function codesPage(codes: readonly string[], form: (fields: Html, button: string) => Html): string {
  return layout(
    'Your recovery codes',
    html`<h1>Your recovery codes</h1>
<p class="soft">Each lets you in once, when the app or passkey is lost. They are shown only now: keep them apart from it.</p>
<ul class="codes">${codes.map((one) => html`<li><code>${one}</code></li>`)}</ul>
${form(html`<p class="small soft">Those from before are good no more.</p>`, 'I have kept them')}`,
  );
}
