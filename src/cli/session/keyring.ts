/**
 * The operating system's credential store (on Linux a Secret Service such as gnome-keyring), by @napi-rs/keyring. It may be
 * locked, missing or hang: every request has a timeout.
 */
import { visibleLine } from '../../domain/text.ts';
import { messageOf } from '../../lib/error-message.ts';
import { failure, leaveThreadBehind } from '../exit.ts';
import { printMessage } from '../output.ts';
import { isWatched } from '../progress.ts';

type Native = typeof import('@napi-rs/keyring');
type KeyringEntry = InstanceType<Native['AsyncEntry']>;

const service = 'andromeda';
const limitMs = 4_000;
/** Timeout that lets a person type a password. */
const unlockLimitMs = 25_000;
const noticeAfterMs = 1_500;
/** Not the kernel's keyring, whose entries are lost at logout. */
const options = { linux: { store: 'secret-service' } } as const;

export function findSecret(account: string): Promise<string | undefined> {
  return asked((native) => find(native, account));
}

export function putSecret(account: string, secret: string): Promise<void> {
  return change(account, (entry) => entry.setPassword(secret));
}

export function deleteSecret(account: string): Promise<void> {
  return change(account, (entry) => entry.deletePassword());
}

async function find(native: Native, account: string): Promise<string | undefined> {
  try {
    const all = await inTime(native.findCredentialsAsync(service), limitMs);
    return all.find((one) => one.account === account)?.password;
  } catch (error) {
    if (!(error instanceof Error && /IsLocked/.test(error.message))) throw error;
    // Reading a single entry makes the store ask for its password.
    const entry = new native.AsyncEntry(service, account, options);
    return (await inTime(entry.getPassword(), unlockLimitMs)) ?? undefined;
  }
}

function change(account: string, work: (entry: KeyringEntry) => Promise<unknown>): Promise<void> {
  return asked(async (native) => {
    // Creating an entry blocks the whole process on the store, so `find` first checks that the store answers.
    await find(native, account);
    await inTime(work(new native.AsyncEntry(service, account, options)), unlockLimitMs);
  });
}

async function asked<T>(work: (native: Native) => Promise<T>): Promise<T> {
  try {
    return await work(await load());
  } catch (error) {
    const message = visibleLine(messageOf(error)).replace(/\.$/, '');
    const reason = isAbsent.test(message) ? 'there is none here' : message;
    throw failure(`The credential store cannot be used: ${reason}.`, error);
  }
}

/** Loads the native addon, which is not part of the portable client and must be installed next to it. */
async function load(): Promise<Native> {
  // Without execve, a thread that waits for the Secret Service forever would keep this process alive (`endDespiteThreads`).
  if (process.platform === 'linux' && !process.execve) throw new Error('that takes Node 22.15 or later');
  try {
    return await import('@napi-rs/keyring');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')
      throw new Error('this client does not have the part for it');
    throw error;
  }
}

/** Messages of zbus and D-Bus when there is no session bus, or no Secret Service on it. */
const isAbsent = /Failed to connect|ServiceUnknown|NameHasNoOwner/;

/** Rejects when there is no answer in time; the native thread that waits for it cannot be stopped. */
async function inTime<T>(answer: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    leaveThreadBehind();
    late.reject(new Error(`it did not answer within ${ms / 1000} seconds`));
  }, ms);
  const notice = setTimeout(() => {
    if (isWatched())
      printMessage('Waiting for the credential store; it may be locked and ask for its password.');
  }, noticeAfterMs);
  return Promise.race([answer, late.promise]).finally(() => {
    clearTimeout(timer);
    clearTimeout(notice);
  });
}
