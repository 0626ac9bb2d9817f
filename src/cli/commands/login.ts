/** `andromeda auth login`: sign in with the device flow (contract, "Sign-in commands"; RFC 8628). */
import { visibleLine } from '../../domain/visible-text.ts';
import { messageOf } from '../../lib/error-message.ts';
import { offerBrowser } from '../browser.ts';
import { type EnvironmentOptions, type Selection, selectEnvironment } from '../environment.ts';
import { failure, type Outcome, usage } from '../exit.ts';
import { interruptible } from '../interrupt.ts';
import { type DeviceCode, startDeviceFlow } from '../net/device-flow.ts';
import { discover } from '../net/discovery.ts';
import type { Tokens } from '../net/issuer.ts';
import { getMe } from '../net/me.ts';
import { differenceNotice, offeredVersion } from '../net/offered.ts';
import { print, printMessage } from '../output.ts';
import { startProgress } from '../progress.ts';
import { findKey } from '../session/current.ts';
import { type LocalState, openLocalState } from '../session/local-state.ts';
import { nameOf, type Session } from '../session/session.ts';

/** Signs in, stores the session and prints who it is. Ctrl-C ends the wait. */
export async function login(options: EnvironmentOptions): Promise<Outcome> {
  const selection = selectEnvironment(options);
  const state = openLocalState();
  if (selection.url !== undefined) await replaceDamaged(state, selection.profile);
  const key = await findKey(state, selection);
  if (!key) throw usage('Say where to sign in: `andromeda auth login --url <platform_url>`.');
  // A session that cannot be stored is not worth the way through the browser.
  await state.exclusively(selection.profile, async () => {});
  const isKnown = await state.sessions.has(key);
  return interruptible('Sign-in was cancelled.', async (signal) => {
    const { scope, ...environment } = await discover(key.platformUrl, signal);
    if (!isKnown) introduce(environment);
    const device = await startDeviceFlow({ ...environment, scope, now: Date.now, signal });
    announce(key.platformUrl, device);
    const tokens = await waitFor(device);
    const session: Session = { scope, ...environment, resource: device.resource, ...tokens };
    return finish(state, selection, session, signal);
  });
}

/** Problems with storing the session are found before the person is sent to the browser, not after. */
async function replaceDamaged(state: LocalState, profile: string): Promise<void> {
  const aside = await state.exclusively(profile, () => state.setAsideDamaged(profile));
  if (aside !== undefined)
    printMessage(`What was stored of the profile '${profile}' is damaged; it is kept as ${aside}.`);
}

/** A platform names its issuer itself, so on the first visit the person is shown where their password goes. */
function introduce({ platformUrl, issuer }: { platformUrl: string; issuer: string }): void {
  if (new URL(platformUrl).origin === new URL(issuer).origin) return;
  printMessage(`You have not signed in to ${platformUrl} before. Its people sign in at ${issuer}.`);
}

function announce(platformUrl: string, device: DeviceCode): void {
  const plain = visibleLine(device.verificationUri);
  print(`To sign in to ${platformUrl}, open`);
  print();
  print(`    ${visibleLine(device.verificationUriComplete ?? plain)}`);
  print();
  print(device.verificationUriComplete ? `or open ${plain} and enter the code` : 'and enter the code');
  print();
  print(`    ${visibleLine(device.userCode)}`);
  print();
}

async function waitFor(device: DeviceCode): Promise<Tokens> {
  const withdraw = offerBrowser(device.verificationUriComplete ?? device.verificationUri);
  const progress = startProgress();
  progress.show('Waiting for you to sign in …');
  return device.wait().finally(() => {
    progress.end();
    withdraw();
  });
}

async function finish(
  state: LocalState,
  selection: Selection,
  session: Session,
  signal: AbortSignal,
): Promise<Outcome> {
  const me = await getMe(session, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    return { status: undefined, message: messageOf(error) };
  });
  if ('user' in me) {
    await store(state, selection, { ...session, user: me.user });
    print(`Signed in as ${nameOf(me.user)}`);
    const notice = differenceNotice(session.platformUrl, await offeredVersion(session.platformUrl, 2_000));
    if (notice !== undefined) printMessage(notice);
    return 'ok';
  }
  // The issuer knows this person, the service does not: a session would be of no use.
  if (me.status === 401 || me.status === 403)
    throw failure(`The issuer signed you in, but ${session.businessUrl} refused you: ${reason(me)}`);
  await store(state, selection, session);
  print(`Signed in to ${session.platformUrl}`);
  printMessage(`Who you are could not be read from ${session.businessUrl}: ${reason(me)}`);
  return 'ok';
}

function reason({ status, message }: { status?: number | undefined; message?: string }): string {
  return visibleLine([status, message].filter((part) => part !== undefined).join(' '));
}

/** `--url` binds the profile to this environment; an address from elsewhere only when it has none yet. */
async function store(state: LocalState, { profile, explicit }: Selection, session: Session): Promise<void> {
  await state.exclusively(profile, async () => {
    await state.sessions.put(profile, session);
    if (explicit || (await state.bindings.find(profile)) === undefined)
      await state.bindings.bind(profile, session.platformUrl);
  });
}
