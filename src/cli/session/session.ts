/**
 * The session: who is signed in to one environment, and the tokens that prove it, which are never printed. And a profile's
 * file, readable by its owner alone: the environment it is bound to, the sessions themselves, and which of them lie in the
 * operating system's credential store instead.
 */
import { chmod, mkdir, readFile, rename } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { isAbsolute, posix, win32 } from 'node:path';
import { visibleName } from '../../domain/text.ts';
import { commandIo } from '../../lib/command-io.ts';
import { messageOf } from '../../lib/error-message.ts';
import { isSafeUrl } from '../../lib/source-address.ts';
import { failure } from '../exit.ts';
import { writeAtomically } from '../files.ts';
import { isObject, parseJson } from '../net/request.ts';

export interface SignedInUser {
  name: string;
  email: string;
}

export interface Session {
  platformUrl: string;
  businessUrl: string;
  issuer: string;
  clientId: string;
  accessToken: string;
  /** Absent when the issuer gave none, or has refused it. */
  refreshToken?: string;
  /** When the access token expires, RFC 3339; absent when the issuer gave no expiry. */
  expiresAt?: string;
  scope?: string;
  /** What the tokens were asked for (RFC 8707); absent where the issuer was not told. */
  resource?: string;
  user?: SignedInUser;
}

/** A session belongs to a profile and an environment: no other environment may ever see its token. */
export interface SessionKey {
  profile: string;
  platformUrl: string;
}

/** Whether the access token has less than 30 seconds left, too little to start a request with. */
export function needsRefresh({ expiresAt }: Session): boolean {
  return expiresAt !== undefined && Date.parse(expiresAt) - Date.now() < 30_000;
}

/**
 * The headers that carry the session's token to `url`. Refuses every address that is not the environment's
 * own: any server that receives the token can use it.
 */
export function authorization(session: Session, url: URL): [string, string] {
  const own = [session.platformUrl, session.businessUrl].some((base) => new URL(base).origin === url.origin);
  if (!own || !isSafeUrl(url))
    throw failure(`The session does not belong to ${url.origin}; nothing was sent.`);
  return ['Authorization', `Bearer ${session.accessToken}`];
}

export function nameOf({ name, email }: SignedInUser): string {
  const address = visibleName(email, 254); // as long as an address may be
  return name ? `${visibleName(name)} <${address}>` : address;
}

const urls = ['platformUrl', 'businessUrl', 'issuer'];
const needed = [...urls, 'clientId', 'accessToken'];
const optional = ['refreshToken', 'expiresAt', 'scope', 'resource'];

/** A session from what was stored, or undefined when it is not one. */
export function parseSession(value: unknown): Session | undefined {
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

export interface ProfileFile {
  platformUrl?: string;
  sessions: Record<string, Session>;
  /** The platform URLs of the sessions in the credential store. */
  inKeyring: string[];
}

/**
 * `$XDG_STATE_HOME/andromeda` (XDG Base Directory: a relative path there is to be ignored); on Windows, where access lists
 * keep others out of it, `%LOCALAPPDATA%\\andromeda`.
 */
export function stateDirectory(env = commandIo().env, platform: NodeJS.Platform = process.platform): string {
  const { isAbsolute, join } = platform === 'win32' ? win32 : posix;
  const base = env.XDG_STATE_HOME || (platform === 'win32' ? env.LOCALAPPDATA : undefined);
  if (base && isAbsolute(base)) return join(base, 'andromeda');
  const usual = platform === 'win32' ? ['AppData', 'Local'] : ['.local', 'state'];
  return join(homeDirectory(), ...usual, 'andromeda');
}

/** The person's home. Never a relative path: the session would lie wherever the command was given. */
export function homeDirectory(): string {
  const { env } = commandIo();
  const own = process.platform === 'win32' ? env.USERPROFILE : env.HOME;
  const homes = [() => own ?? '', () => userInfo().homedir].map((find) => {
    try {
      return find();
    } catch {
      return ''; // an account that the machine does not know, as in a container
    }
  });
  const home = homes.find((path) => isAbsolute(path));
  if (home === undefined) throw failure('You have no home directory here; set HOME to one.');
  return home;
}

export async function prepareDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await chmod(directory, 0o700); // it may have been there before, with wider rights
  } catch (error) {
    throw failure(`The session cannot be kept in ${directory}: ${messageOf(error)}.`, error);
  }
}

/** A profile that was never written is an empty one. Throws a sentence when the file is damaged. */
export async function readProfile(path: string): Promise<ProfileFile> {
  const file = await readAny(path);
  if (file === 'damaged')
    throw failure(
      `${path} is damaged; sign in again with \`andromeda auth login --url <platform_url>\`, which keeps it aside.`,
    );
  return file;
}

/** Renames a damaged file, so that a new one can be written; returns what it is called now, undefined for a sound one. */
export async function setAsideDamaged(path: string): Promise<string | undefined> {
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

export async function writeProfile(path: string, file: ProfileFile): Promise<void> {
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
