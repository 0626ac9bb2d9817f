/** `andromeda auth`: sign in by the device flow (contract, "Sign-in commands"; RFC 8628), show the session, sign out. */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { visibleLine } from '../../domain/text.ts';
import { commandIo } from '../../lib/command-io.ts';
import { messageOf } from '../../lib/error-message.ts';
import { isAttended } from '../ask.ts';
import { type EnvironmentOptions, type Selection, selectEnvironment } from '../environment.ts';
import { failure, usage } from '../exit.ts';
import { differenceNotice, discover, offeredVersion } from '../net/discovery.ts';
import type { DeviceCode } from '../net/issuer.ts';
import { getJson, isObject, parseJson, urlAt } from '../net/request.ts';
import { print, printAnswer, printMessage } from '../output.ts';
import { interruptible, withProgress } from '../progress.ts';
import {
  authorization,
  findKey,
  type LocalState,
  nameOf,
  openLocalState,
  type Session,
  type SignedInUser,
  sessionEnded,
  storedSession,
} from '../session/local-state.ts';

export async function login(options: EnvironmentOptions): Promise<void> {
  const selection = selectEnvironment(options);
  const state = openLocalState();
  if (selection.url !== undefined) await replaceDamaged(state, selection.profile);
  const given = await findKey(state, selection);
  if (!given) throw usage('Say where to sign in: `andromeda auth login --url <platform_url>`.');
  // Fails before the browser sign-in if the session could not be stored.
  await state.exclusively(selection.profile, async () => {});
  return interruptible('Sign-in was cancelled.', async (signal) => {
    // The other commands of this file do not need openid-client.
    const { startDeviceFlow } = await import('../net/issuer.ts');
    const { scope, ...environment } = await discover(given.platformUrl, signal);
    const { platformUrl } = environment;
    if (!(await state.has({ ...given, platformUrl }))) introduce(environment);
    const device = await startDeviceFlow({ ...environment, scope, signal });
    announce(platformUrl, device);
    const withdraw = offerBrowser(device.answer.verification_uri_complete ?? device.answer.verification_uri);
    const tokens = await withProgress((show) => {
      show('Waiting for you to sign in …');
      return device.wait();
    }).finally(withdraw);
    const { resource } = device;
    const session: Session = {
      scope,
      ...environment,
      ...(resource !== undefined && { resource }),
      ...tokens,
    };
    return finish(state, selection, session, signal);
  });
}

/** Storage problems are found before the person is sent to the browser. */
async function replaceDamaged(state: LocalState, profile: string): Promise<void> {
  const aside = await state.exclusively(profile, () => state.setAsideDamaged(profile));
  if (aside !== undefined)
    printMessage(`What was stored of the profile '${profile}' is damaged; it is kept as ${aside}.`);
}

/** A platform names its issuer itself: at the first sign-in, shows the person which server will get their password. */
function introduce({ platformUrl, issuer }: { platformUrl: string; issuer: string }): void {
  if (new URL(platformUrl).origin === new URL(issuer).origin) return;
  printMessage(`You have not signed in to ${platformUrl} before. Its people sign in at ${issuer}.`);
}

function announce(platformUrl: string, device: DeviceCode): void {
  const plain = visibleLine(device.answer.verification_uri);
  const complete = device.answer.verification_uri_complete;
  print(`To sign in to ${platformUrl}, open

    ${complete ? visibleLine(complete) : plain}

${complete ? `or open ${plain} and enter the code` : 'and enter the code'}

    ${visibleLine(device.answer.user_code)}
`);
}

async function finish(
  state: LocalState,
  selection: Selection,
  session: Session,
  signal: AbortSignal,
): Promise<void> {
  const { platformUrl, businessUrl } = session;
  const keep = async () => {
    const { user, status, message } = await readMe(session, signal);
    const reason = visibleLine([status, message].filter((part) => part !== undefined).join(' '));
    // The issuer knows the person and the service does not: a session would be useless.
    if (status === 401 || status === 403)
      throw failure(`The issuer signed you in, but ${businessUrl} refused you: ${reason}`);
    return { user, reason, replaced: await store(state, selection, { ...session, ...(user && { user }) }) };
  };
  const { user, reason, replaced } = await keep().catch((error: unknown) => {
    revoke(session, { isKept: false }).catch(() => {});
    throw error;
  });
  // At Keycloak one browser's sign-ins share a session: revoking the old token would end the new one.
  const sid = sessionIdOf(session);
  const isOver = replaced?.refreshToken !== undefined && (sid === undefined || sid !== sessionIdOf(replaced));
  const revoked = isOver ? revoke(replaced).catch(() => {}) : undefined;
  print(user ? `Signed in as ${nameOf(user)}` : `Signed in to ${platformUrl}`);
  const notice = user
    ? differenceNotice(platformUrl, await offeredVersion(platformUrl, 2_000))
    : `Who you are could not be read from ${businessUrl}: ${reason}`;
  if (notice !== undefined) printMessage(notice);
  // Last, because a slow issuer must not seem to be a hanging sign-in.
  await revoked;
}

/** `GET /me` (contract, "Business API"): returns the person, or the status and message of the failure. */
async function readMe(
  session: Session,
  signal: AbortSignal,
): Promise<{ user?: SignedInUser; status?: number; message?: unknown }> {
  const url = urlAt(session.businessUrl, '/me');
  try {
    const { status, body } = await getJson({ url, headers: [authorization(session, url)], signal });
    const user = body?.user;
    if (status !== 200 || !isObject(user) || typeof user.primary_email !== 'string')
      return { status, message: body?.message };
    return { user: { name: String(user.display_name ?? ''), email: user.primary_email } };
  } catch (error) {
    signal.throwIfAborted();
    return { message: messageOf(error) };
  }
}

/** Stores the session and returns the one it replaces. Binds the profile to `--url`, or to any URL if it had none. */
async function store(
  state: LocalState,
  { profile, explicit }: Selection,
  session: Session,
): Promise<Session | undefined> {
  const { platformUrl } = session;
  return state.exclusively(profile, async () => {
    const replaced = await state.get({ profile, platformUrl }).catch(() => undefined);
    await state.put(profile, session);
    if (explicit || (await state.boundTo(profile)) === undefined) await state.bind(profile, platformUrl);
    return replaced;
  });
}

/** The `sid` claim of an access token that is a JWT (OpenID Connect Front-Channel Logout 1.0, 3). */
function sessionIdOf({ accessToken }: Session): unknown {
  const claims = parseJson(Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString('utf8'));
  return isObject(claims) ? claims.sid : undefined;
}

export async function status({
  output,
  ...options
}: EnvironmentOptions & { output?: string }): Promise<void> {
  const selection = selectEnvironment(options);
  const state = openLocalState();
  const session = await storedSession(state, selection);
  const expired = session.expiresAt !== undefined && Date.parse(session.expiresAt) <= Date.now();
  if (expired && session.refreshToken === undefined) throw sessionEnded(selection);

  const { user, platformUrl, businessUrl, issuer, expiresAt, refreshToken } = session;
  const { profile } = selection;
  const text = [
    user ? `Signed in as ${nameOf(user)}` : 'Signed in',
    `Environment   ${platformUrl}`,
    `Profile       ${profile}`,
    `Access token  ${lifetime(session, expired)}`,
  ].join('\n');
  const refreshable = refreshToken !== undefined;
  await printAnswer(
    { json: { user, profile, platformUrl, businessUrl, issuer, expiresAt, refreshable }, text },
    output,
  );
}

function lifetime({ expiresAt, refreshToken }: Session, expired: boolean): string {
  if (expiresAt === undefined) return 'valid until the issuer ends it';
  const refresh = refreshToken === undefined ? 'then sign in again' : 'refreshed when needed';
  return `${expired ? 'expired' : 'valid until'} ${visibleLine(expiresAt)}, ${refresh}`;
}

/** Deletes the session, even if the issuer cannot revoke it. Without a session it succeeds. */
export async function logout(options: EnvironmentOptions): Promise<void> {
  const selection = selectEnvironment(options);
  const state = openLocalState();
  const aside = await state.setAsideDamaged(selection.profile);
  if (aside !== undefined)
    printMessage(`The session file was damaged, and is kept as ${aside}; what was in it is not revoked.`);
  const key = await findKey(state, selection);
  const nothing = () => print(`Not signed in${key ? ` to ${key.platformUrl}` : ''}; nothing to do.`);
  if (!key || !(await state.get(key))) return nothing();
  // Under the lock: otherwise a refresh in another process could replace the token between reading and revoking it.
  await state.exclusively(selection.profile, async () => {
    const session = await state.get(key);
    if (!session) return nothing();
    try {
      await revoke(session);
    } catch (error) {
      printMessage(
        `The session was deleted here, but could not be revoked at the issuer: ${messageOf(error)}`,
      );
    } finally {
      await state.delete(key);
    }
    print(`Signed out of ${key.platformUrl}`);
  });
}

/** Revokes the refresh token, which ends the grant, or else the access token. */
async function revoke(session: Session, { isKept } = { isKept: true }): Promise<void> {
  const { revokeToken, revokeUnkept } = await import('../net/issuer.ts');
  const send = isKept ? revokeToken : revokeUnkept;
  const { refreshToken, accessToken } = session;
  if (refreshToken === undefined) return send(session, accessToken, 'access_token');
  return send(session, refreshToken, 'refresh_token');
}

/** Offers to open an address when the person presses Enter. Returns a function that withdraws the offer. */
function offerBrowser(address: string): () => void {
  const { env, stderr } = commandIo();
  const browser = findBrowser(env, process.platform);
  const url = URL.parse(address);
  const isPage = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (!browser || !isPage || !isAttended() || !stderr.isTTY) return () => {};
  printMessage('Press Enter to open it in a browser on this machine.');
  const open = () => {
    const [program = '', ...args] = browser;
    const child = spawn(program, [...args, url.href], { env, stdio: 'ignore', detached: true });
    child.on('error', () => {}); // the address is on the screen
    child.unref();
  };
  const { stdin } = commandIo();
  stdin.once('data', open);
  return () => {
    stdin.off('data', open);
    stdin.pause();
  };
}

/** The program that opens pages, with its first arguments: $BROWSER, or the desktop's. Undefined without a desktop. */
export function findBrowser(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string[] | undefined {
  const own = env.BROWSER?.split(delimiter)[0];
  if (own) return [own];
  if (platform === 'darwin') return ['open'];
  // `start` is built into cmd.exe, which would interpret the & of an address.
  if (platform === 'win32') return ['rundll32.exe', 'url.dll,FileProtocolHandler'];
  const hasDesktop = Boolean(env.DISPLAY || env.WAYLAND_DISPLAY);
  return hasDesktop && isInstalled('xdg-open', env.PATH ?? '') ? ['xdg-open'] : undefined;
}

function isInstalled(program: string, path: string): boolean {
  return path.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
