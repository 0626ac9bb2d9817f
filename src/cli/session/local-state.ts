/**
 * Sessions on this machine: in the operating system's credential store or, if there is none (a headless login), in the
 * profile's file. `ANDROMEDA_CREDENTIAL_STORE` decides; without it, a sign-in takes the first that works, and later changes
 * stay there. A profile's file, readable only by its owner, has its bound environment, sessions, and a list of those in the
 * credential store. Tokens are never printed.
 */
import { chmod, mkdir, readFile, rename } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { userInfo } from 'node:os';
import { dirname, isAbsolute, join, posix, win32 } from 'node:path';
import { visibleName } from '../../domain/text.ts';
import { commandIo } from '../../lib/command-io.ts';
import { messageOf } from '../../lib/error-message.ts';
import { isSafeUrl } from '../../lib/source-address.ts';
import type { Selection } from '../environment.ts';
import { CliError, failure, usage } from '../exit.ts';
import { writeAtomically } from '../files.ts';
import type { Environment } from '../net/discovery.ts';
import type { Tokens } from '../net/issuer.ts';
import { type HttpRequest, isObject, parseJson, send } from '../net/request.ts';
import { printMessage } from '../output.ts';
import { exclusively } from './lock.ts';

export type LocalState = ReturnType<typeof openLocalState>;

/**
 * Throws `usage` when ANDROMEDA_CREDENTIAL_STORE names no known store. `put` and `delete` are idempotent. Writers hold the
 * profile's lock (`exclusively`), because a refresh is a read, a request and a write that belong together.
 */
export function openLocalState() {
  const directory = stateDirectory();
  const chosen = chosenStore();
  const fileOf = (profile: string) => join(directory, `${profile}.json`);

  const locate = async ({ profile, platformUrl }: SessionKey) => {
    const file = await readProfile(fileOf(profile));
    const isInKeyring = file.inKeyring.includes(platformUrl) && chosen !== 'file';
    return { isInKeyring, session: file.sessions[platformUrl] };
  };

  return {
    async get(key: SessionKey): Promise<Session | undefined> {
      const { isInKeyring, session } = await locate(key);
      return isInKeyring ? readKeyring(key) : session;
    },
    async has(key: SessionKey): Promise<boolean> {
      const { isInKeyring, session } = await locate(key);
      return isInKeyring || session !== undefined;
    },
    async put(profile: string, session: Session): Promise<void> {
      const { platformUrl } = session;
      const known = await locate({ profile, platformUrl });
      const store = chosen ?? (known.session && 'file');
      const isStored = store !== 'file' && (await putInKeyring(session, profile, fileOf(profile), store));
      await change(fileOf(profile), (file) => {
        forget(file, platformUrl);
        if (isStored) file.inKeyring.push(platformUrl);
        else file.sessions[platformUrl] = session;
      });
    },
    async delete(key: SessionKey): Promise<void> {
      const { isInKeyring } = await locate(key);
      if (isInKeyring) await (await keyring()).deleteSecret(accountOf(key));
      await change(fileOf(key.profile), (file) => forget(file, key.platformUrl));
    },
    boundTo: async (profile: string) => (await readProfile(fileOf(profile))).platformUrl,
    bind: (profile: string, platformUrl: string) =>
      change(fileOf(profile), (file) => Object.assign(file, { platformUrl })),
    /** Renames the profile's file if it is damaged; returns its new name, or undefined. */
    setAsideDamaged: (profile: string) => setAsideDamaged(fileOf(profile)),
    /** Runs `work` under the profile's lock: no other process of this user changes the profile meanwhile. */
    async exclusively<T>(profile: string, work: () => Promise<T>): Promise<T> {
      await prepareDirectory(directory);
      return exclusively(join(directory, `${profile}.lock`), work);
    },
  };
}

async function change(path: string, edit: (file: ProfileFile) => void): Promise<void> {
  const file = await readProfile(path);
  edit(file);
  await prepareDirectory(dirname(path));
  await writeProfile(path, file);
}

function forget(file: ProfileFile, platformUrl: string): void {
  file.inKeyring = file.inKeyring.filter((url) => url !== platformUrl);
  delete file.sessions[platformUrl];
}

async function putInKeyring(
  session: Session,
  profile: string,
  file: string,
  store: 'keyring' | undefined,
): Promise<boolean> {
  try {
    await (await keyring()).putSecret(accountOf({ ...session, profile }), JSON.stringify(session));
    return true;
  } catch (error) {
    if (store === 'keyring' || !(error instanceof Error)) throw error;
    printMessage(`${error.message} The session is kept in ${file}, which only you can read.`);
    return false;
  }
}

function chosenStore(): 'keyring' | 'file' | undefined {
  const store = commandIo().env.ANDROMEDA_CREDENTIAL_STORE || undefined;
  if (store === undefined || store === 'keyring' || store === 'file') return store;
  throw usage(`ANDROMEDA_CREDENTIAL_STORE is '${store}'; it may be keyring or file.`);
}

/** Native code, loaded only if the credential store is used. */
function keyring() {
  return import('./keyring.ts');
}

async function readKeyring(key: SessionKey): Promise<Session | undefined> {
  const secret = await (await keyring()).findSecret(accountOf(key)).catch((error: Error) => {
    const fix = 'Your session is in it; `andromeda auth login` makes one that is not.';
    throw failure(`${error.message} ${fix}`, error);
  });
  const session = parseSession(parseJson(secret ?? ''));
  // Another environment's token would be sent to the wrong server.
  return session?.platformUrl === key.platformUrl ? session : undefined;
}

function accountOf({ profile, platformUrl }: SessionKey): string {
  return `${profile} ${platformUrl}`;
}

export function sessionEnded(selection: Selection): CliError {
  return signInFirst(`Your session has ended; sign in again with \`${loginCommand(selection)}\`.`);
}

function signInFirst(sentence: string): CliError {
  return new CliError('notSignedIn', sentence);
}

function loginCommand({ profile, url }: Selection): string {
  const where = profile === 'default' ? '' : ` --profile ${profile}`;
  const at = url === undefined ? '' : ` --url ${url}`;
  return `andromeda auth login${where}${at}`;
}

export async function findKey(
  state: LocalState,
  { profile, url }: Selection,
): Promise<SessionKey | undefined> {
  const platformUrl = url ?? (await state.boundTo(profile));
  return platformUrl === undefined ? undefined : { profile, platformUrl };
}

export async function storedSession(state: LocalState, selection: Selection): Promise<Session> {
  const key = await findKey(state, selection);
  const session = key && (await state.get(key));
  if (!session) throw notSignedIn(key, selection);
  return session;
}

/**
 * A session whose access token is valid for a request, refreshed if needed (contract, "Session storage"). Issuers accept a
 * refresh token once: a second process waits for the lock and then finds the session that the first one stored.
 */
export async function freshSession(
  state: LocalState,
  selection: Selection,
  refused?: Session,
): Promise<Session> {
  // A token with less than 30 seconds left may expire during the request.
  const isUsedUp = ({ expiresAt, accessToken }: Session) =>
    (expiresAt !== undefined && Date.parse(expiresAt) - Date.now() < 30_000) ||
    accessToken === refused?.accessToken;
  const session = await storedSession(state, selection);
  if (!isUsedUp(session)) return session;
  return state.exclusively(selection.profile, async () => {
    const latest = await storedSession(state, selection);
    return isUsedUp(latest) ? refresh(state, selection, latest) : latest;
  });
}

/** Sends the request for the session; retries once with a new token after a 401, for example after a key rotation. */
export async function sendSigned(
  state: LocalState,
  selection: Selection,
  requestOf: (session: Session) => HttpRequest,
): Promise<{ response: IncomingMessage; url: URL }> {
  const sendAs = async (session: Session) => {
    const request = requestOf(session);
    const headers = [...(request.headers ?? []), authorization(session, request.url)];
    return { response: await send({ ...request, headers }), url: request.url };
  };
  const session = await freshSession(state, selection);
  const answer = await sendAs(session);
  if (answer.response.statusCode !== 401 || session.refreshToken === undefined) return answer;
  // If the issuer gives no new token, the API's refusal is the better message.
  const renewed = await freshSession(state, selection, session).catch(() => undefined);
  if (!renewed) return answer;
  answer.response.destroy();
  return sendAs(renewed);
}

async function refresh(state: LocalState, selection: Selection, session: Session): Promise<Session> {
  const { profile } = selection;
  if (session.refreshToken === undefined) throw sessionEnded(selection);
  const { refreshTokens } = await import('../net/issuer.ts');
  const tokens = await refreshTokens(session, session.refreshToken, session.resource);
  if (tokens === 'refused') {
    const { refreshToken: _refused, ...ended } = session;
    await state.put(profile, ended);
    throw sessionEnded(selection);
  }
  const refreshed = { ...session, ...tokens };
  await state.put(profile, refreshed);
  return refreshed;
}

function notSignedIn(key: SessionKey | undefined, selection: Selection): CliError {
  const command = loginCommand(selection);
  if (!key) return signInFirst(`You are not signed in; run \`${command} --url <platform_url>\`.`);
  return signInFirst(`You are not signed in to ${key.platformUrl}; run \`${command}\`.`);
}

export interface SignedInUser {
  name: string;
  email: string;
}

export interface Session extends Omit<Environment, 'scope'>, Tokens {
  /** The resource of the token request (RFC 8707); undefined if the request had none. */
  resource?: string;
  user?: SignedInUser;
}

/** A session belongs to a profile and an environment: its token must never be sent to another environment. */
interface SessionKey {
  profile: string;
  platformUrl: string;
}

/**
 * The header with the session's token for `url`. Refuses every address outside the environment, because any server that
 * receives the token can use it.
 */
export function authorization(session: Session, url: URL): [string, string] {
  const own = [session.platformUrl, session.businessUrl].some((base) => new URL(base).origin === url.origin);
  if (!own || !isSafeUrl(url))
    throw failure(`The session does not belong to ${url.origin}; nothing was sent.`);
  return ['Authorization', `Bearer ${session.accessToken}`];
}

export function nameOf({ name, email }: SignedInUser): string {
  const address = visibleName(email, 254); // the longest address
  return name ? `${visibleName(name)} <${address}>` : address;
}

const urls = ['platformUrl', 'businessUrl', 'issuer'];
const needed = [...urls, 'clientId', 'accessToken'];
const optional = ['refreshToken', 'expiresAt', 'scope', 'resource'];

/** Parses a stored session; undefined when it is not valid. */
function parseSession(value: unknown): Session | undefined {
  if (!isObject(value)) return undefined;
  const isText = (name: string) => typeof value[name] === 'string';
  if (!needed.every(isText) || !urls.every((name) => URL.canParse(String(value[name])))) return undefined;
  const texts = [...needed, ...optional].filter(isText).map((name) => [name, value[name]]);
  const user = isUser(value.user) && { user: { name: value.user.name, email: value.user.email } };
  return { ...Object.fromEntries(texts), ...user } as Session;
}

function isUser(value: unknown): value is SignedInUser {
  return isObject(value) && typeof value.name === 'string' && typeof value.email === 'string';
}

interface ProfileFile {
  platformUrl?: string;
  sessions: Record<string, Session>;
  /** The platform URLs of the sessions in the credential store. */
  inKeyring: string[];
}

/**
 * `$XDG_STATE_HOME/andromeda` (XDG Base Directory: ignores a relative path). On Windows `%LOCALAPPDATA%\\andromeda`, which
 * access lists protect from other users.
 */
export function stateDirectory(env = commandIo().env, platform: NodeJS.Platform = process.platform): string {
  const { isAbsolute, join } = platform === 'win32' ? win32 : posix;
  const base = env.XDG_STATE_HOME || (platform === 'win32' ? env.LOCALAPPDATA : undefined);
  if (base && isAbsolute(base)) return join(base, 'andromeda');
  const usual = platform === 'win32' ? ['AppData', 'Local'] : ['.local', 'state'];
  return join(homeDirectory(), ...usual, 'andromeda');
}

/** The person's home; never a relative path, which would store sessions in the current directory. */
export function homeDirectory(): string {
  const { env } = commandIo();
  const own = process.platform === 'win32' ? env.USERPROFILE : env.HOME;
  const homes = [() => own ?? '', () => userInfo().homedir].map((find) => {
    try {
      return find();
    } catch {
      return ''; // an account without a passwd entry, as in a container
    }
  });
  const home = homes.find((path) => isAbsolute(path));
  if (home === undefined) throw failure('You have no home directory here; set HOME to one.');
  return home;
}

async function prepareDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await chmod(directory, 0o700); // an existing one may have wider permissions
  } catch (error) {
    throw failure(`The session cannot be kept in ${directory}: ${messageOf(error)}.`, error);
  }
}

/** Reads a profile; one that was never written is empty. Throws a message when the file is damaged. */
async function readProfile(path: string): Promise<ProfileFile> {
  const file = await readAny(path);
  if (file === 'damaged')
    throw failure(
      `${path} is damaged; sign in again with \`andromeda auth login --url <platform_url>\`, which keeps it aside.`,
    );
  return file;
}

/** Renames a damaged file, so that a new one can be written. Returns its new name; undefined for a valid file. */
async function setAsideDamaged(path: string): Promise<string | undefined> {
  if ((await readAny(path)) !== 'damaged') return undefined;
  const aside = `${path}.damaged-${new Date().toISOString().replaceAll(':', '-')}`;
  await rename(path, aside).catch((error: unknown) => {
    throw failure(`${path} is damaged and cannot be renamed: ${messageOf(error)}.`, error);
  });
  return aside;
}

async function readAny(path: string): Promise<ProfileFile | 'damaged'> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw failure(`${path} cannot be read: ${messageOf(error)}.`, error);
  });
  if (text === undefined) return { sessions: {}, inKeyring: [] };
  return parse(text) ?? 'damaged';
}

async function writeProfile(path: string, file: ProfileFile): Promise<void> {
  const { inKeyring, ...rest } = file;
  const content = inKeyring.length === 0 ? rest : file;
  const text = `${JSON.stringify(content, null, 2)}\n`;
  await writeAtomically(path, text, `The session could not be written to ${path}`);
}

function parse(text: string): ProfileFile | undefined {
  const value = parseJson(text);
  if (!isObject(value) || !isObject(value.sessions)) return undefined;
  const { platformUrl, sessions, inKeyring } = value;
  const file: ProfileFile = { sessions: {}, inKeyring: [] };
  if (typeof platformUrl === 'string') file.platformUrl = platformUrl;
  if (Array.isArray(inKeyring)) file.inKeyring = inKeyring.filter((url) => typeof url === 'string');
  for (const [url, stored] of Object.entries(sessions)) {
    const session = parseSession(stored);
    // Under another environment's key, its token would be sent to the wrong server.
    if (session?.platformUrl !== url) return undefined;
    file.sessions[url] = session;
  }
  return file;
}
