/**
 * The step after the password: a code or a passkey, or setting one up. Nothing is stored meanwhile: a hidden field of the form
 * carries, encrypted and for this browser only, whose password was right.
 */
import { seal, unseal } from '../../../../lib/seal.ts';
import { findPasswordOfUser, type PasswordAccount } from '../../../../store/people/identities.ts';
import { findSecondFactor } from '../../../../store/people/second-factors.ts';
import { type Exchange, type PagesContext, plural } from '../exchange.ts';
import { askForNew, askForOne, type PasskeyRequest, relyingPartyOf } from './passkeys.ts';
import { type Answer, mostPasskeys, newAppSecret } from './second-factor.ts';

/** What comes next: a code or a passkey, setting one up, or taking down the recovery codes, after which everything is proven. */
type Stage = 'code' | 'setup' | 'codes';

/** The page that is shown next. */
export interface Step {
  stage: Stage;
  email: string;
  /** The hidden field. */
  proven: string;
  /** Of the app to set up. */
  secret?: string | undefined;
  /** Whether there is an app that shows codes. */
  hasApp: boolean;
  /** What a button asks the browser for. */
  passkey?: PasskeyRequest | undefined;
  /** To be taken down. */
  codes?: readonly string[] | undefined;
  status: number;
  message?: string | undefined;
}

/** What a browser has proved, until a time in ms since 1970. */
interface Proven {
  userId: string;
  /** That the password is still the same. */
  generation: number;
  stage: Stage;
  secret?: string | undefined;
  /** Of a passkey. */
  challenge?: string | undefined;
  /** Since when there is a factor at all: one that was set up meanwhile stays. */
  before?: string | undefined;
  until: number;
}

const stepMs = 10 * 60_000;
const purposeOf = ({ browser }: Exchange) => `second step of ${browser.nonce}`;

/** The page after a right password; undefined where nothing more is needed. */
export async function beginStep(
  context: PagesContext,
  exchange: Exchange,
  account: PasswordAccount,
): Promise<Step | undefined> {
  const needed = await context.factors.neededBy(account.userId);
  return needed === 'nothing' ? undefined : stepOf(context, exchange, account, { stage: needed });
}

type StepResult = { account: PasswordAccount } | { step: Step } | undefined;

/** What a step comes to: everything is proven, or another page. Undefined where it is too old, or was begun by another browser. */
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
  if (stage === 'codes') return { account };
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

/** A page: for a code or a passkey, to set one up, or with recovery codes. */
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
