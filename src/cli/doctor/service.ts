/** The first half of the checks: the service's address, its certificate, both clocks, and the sign-in. */
import { stat } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import { TLSSocket } from 'node:tls';
import { dayMs } from '../../domain/access/lapse.ts';
import { visibleLine } from '../../domain/text.ts';
import { clockToleranceMs } from '../../lib/clock.ts';
import { type EnvironmentOptions, type Selection, selectEnvironment } from '../environment.ts';
import { asWord } from '../everyday/keys.ts';
import { createClient } from '../net/api.ts';
import {
  differenceNotice,
  installLine,
  metadataPath,
  offeredVersion,
  parseEnvironment,
} from '../net/discovery.ts';
import { isObject, parseJson, readText, send, urlAt } from '../net/request.ts';
import { findKey, freshSession, nameOf, openLocalState, stateDirectory } from '../session/local-state.ts';
import { type Finding, findingsAbout, sentenceOf } from './finding.ts';

const onAddress = findingsAbout('address');
const onClient = findingsAbout('client');
const onTls = findingsAbout('tls');
const onClock = findingsAbout('clock');
const onSignIn = findingsAbout('sign-in');

export async function* checkService(options: EnvironmentOptions): AsyncGenerator<Finding, boolean> {
  const selection = selectEnvironment(options);
  const state = openLocalState();
  const key = await findKey(state, selection).catch(sentenceOf);
  if (key === undefined || typeof key === 'string') {
    const fix = `\`andromeda auth login${flagsOf(selection)} --url <platform_url>\`; the operator of the service knows its address.`;
    yield onAddress.wrong(key ?? `None is known for the profile '${selection.profile}'.`, fix);
    return false;
  }
  const { platformUrl } = key;
  const isThere = yield* checkAddress(platformUrl);
  if (!isThere) return false;
  const notice = differenceNotice(platformUrl, await offeredVersion(platformUrl, 5_000));
  if (notice) yield onClient.warn(notice, `Type ${installLine(platformUrl)}`);
  return yield* checkSignIn(selection, options);
}

async function* checkAddress(platformUrl: string): AsyncGenerator<Finding, boolean> {
  const url = urlAt(platformUrl, metadataPath);
  const before = Date.now();
  let response: IncomingMessage;
  try {
    response = await send({ method: 'GET', url, timeoutMs: 20_000 });
  } catch (error) {
    const isTls = /TLS/.test(sentenceOf(error));
    const isPlain = /does not speak TLS/.test(sentenceOf(error));
    const fix = isPlain
      ? 'Does its address begin with http:// and not https://, or has it another port? Ask the operator of the service.'
      : isTls
        ? 'Trust the certificate authority of the service (NODE_EXTRA_CA_CERTS names its file), or have its operator renew the certificate.'
        : 'Is the address right, and is this machine in the network of the service (VPN)? Ask its operator.';
    yield (isTls ? onTls : onAddress).wrong(sentenceOf(error), fix);
    return false;
  }
  const after = Date.now();
  const facts = [...certificateFacts(response), ...clockFacts(response, (before + after) / 2)];
  const body = parseJson(await readText(response, 2 ** 20).catch(() => ''));
  const environment = isObject(body) ? parseEnvironment(platformUrl, body) : 'it is no JSON object';
  if (response.statusCode !== 200 || typeof environment === 'string') {
    const why = response.statusCode === 200 ? `: ${String(environment)}` : ` (${response.statusCode})`;
    const fix =
      'Sign in with the address of the Platform API or the console: `andromeda auth login --url <platform_url>`.';
    yield onAddress.wrong(`${platformUrl} answers, and not as a platform does${why}.`, fix);
    return false;
  }
  yield onAddress.ok(`${platformUrl} answers, in ${after - before} ms.`);
  yield* facts;
  return true;
}

function* certificateFacts({ socket }: IncomingMessage): Generator<Finding> {
  if (!(socket instanceof TLSSocket)) return yield onTls.ok('None: the service is on this machine.');
  const { valid_to: until, issuer } = socket.getPeerCertificate();
  const left = Date.parse(until) - Date.now();
  const by = visibleLine(String(issuer?.O ?? issuer?.CN ?? 'an authority that it does not name'));
  const text = `The certificate, by ${by}, is valid until ${new Date(until).toISOString().slice(0, 10)}.`;
  if (left < 7 * dayMs)
    yield onTls.warn(text, 'Tell the operator of the service that its certificate ends soon.');
  else yield onTls.ok(text);
}

function* clockFacts({ headers }: IncomingMessage, at: number): Generator<Finding> {
  const theirs = Date.parse(headers.date ?? '');
  if (Number.isNaN(theirs)) return;
  // The `Date` header has whole seconds: on average it is half a second behind.
  const ahead = Math.round((at - theirs - 500) / 1000);
  const text =
    Math.abs(ahead) <= 1
      ? 'This clock and that of the service are together.'
      : `This clock is ${Math.abs(ahead)} seconds ${ahead > 0 ? 'ahead of' : 'behind'} that of the service.`;
  if (Math.abs(ahead) * 1000 <= clockToleranceMs) yield onClock.ok(text);
  else yield onClock.wrong(text, 'Set the clock of this machine (by a time server), and sign in again.');
}

async function* checkSignIn(
  selection: Selection,
  options: EnvironmentOptions,
): AsyncGenerator<Finding, boolean> {
  const state = openLocalState();
  const fix = `\`andromeda auth login${flagsOf(selection)}\``;
  try {
    const session = await freshSession(state, selection);
    const { user } = await createClient(options, 'andromeda doctor').api.get('/me');
    const who = nameOf({ name: user.display_name, email: user.primary_email });
    const until = session.expiresAt === undefined ? '' : `, until ${session.expiresAt}`;
    const renewed = session.refreshToken === undefined ? '' : ' and renewed by itself';
    yield onSignIn.ok(`${who}${until}${renewed}.`);
    yield* checkSessionFile(selection);
    return true;
  } catch (error) {
    yield onSignIn.wrong(sentenceOf(error), fix);
    return false;
  }
}

/** Checks the mode of the profile's file, which may contain tokens. Windows has access lists instead of modes. */
async function* checkSessionFile({ profile }: Selection): AsyncGenerator<Finding> {
  if (process.platform === 'win32') return;
  const file = path.join(stateDirectory(), `${profile}.json`);
  const mode = (await stat(file).catch(() => undefined))?.mode;
  if (mode === undefined || (mode & 0o777) === 0o600) return;
  const octal = (mode & 0o777).toString(8).padStart(4, '0');
  yield onSignIn.warn(
    `${file}, which keeps your session, has the mode ${octal}, and should have 0600.`,
    `\`chmod 600 ${asWord(file)}\``,
  );
}

function flagsOf({ profile, url }: Selection): string {
  return `${profile === 'default' ? '' : ` --profile ${profile}`}${url === undefined ? '' : ` --url ${asWord(url)}`}`;
}
