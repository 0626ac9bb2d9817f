/** Findings of `doctor` about dependencies of an installation: its addresses, its issuer, its clusters, and its downloads. */
import manifest from '../../../../package.json' with { type: 'json' };
import { trustAuthority } from '../../../api/identity/remote-issuer.ts';
import { DomainError } from '../../../domain/error.ts';
import type { GroupSettings } from '../../../domain/organizations/group-rules.ts';
import { clockToleranceMs } from '../../../lib/clock.ts';
import { messageOf } from '../../../lib/error-message.ts';
import { isSafeUrl } from '../../../lib/source-address.ts';
import type { AuditFindings, ClusterSideState } from '../../../store/data-dir/inspect.ts';
import { checkOrganizations } from '../../config/groups.ts';
import type { Config } from '../../config/index.ts';
import { readRelease } from '../../downloads/offer.ts';
import { type Finding, ok, warn, wrong } from './findings.ts';

const issuerMs = 10_000;
const mostAnswer = 1_048_576;
const freshMs = 120_000;

/** Checks that the rules for groups name existing organizations. Throws as `checkOrganizations`. */
export function* judgeGroups(groups: GroupSettings, slugs: readonly string[]): Generator<Finding> {
  checkOrganizations(groups, slugs);
  yield ok('groups', 'Every rule for groups names an organization that is there.');
}

/**
 * Checks that an external issuer works for the service, with a clock that agrees with ours. `away`: the verdict where
 * it does not answer at all.
 */
export async function* checkIssuer({ identity }: Config, away: typeof wrong): AsyncGenerator<Finding> {
  const about = 'issuer';
  trustAuthority(identity.ca);
  const { issuer } = identity;
  if (issuer === undefined) return yield ok(about, 'The built-in one, which is a part of the service.');
  let url = `${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`;
  try {
    const answer = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(issuerMs) });
    const text = await readWithin(answer);
    if (!answer.ok) return yield wrong(about, `${url} answers ${answer.status}. Nobody can sign in.`);
    const metadata = JSON.parse(text);
    if (metadata.issuer !== issuer)
      return yield wrong(
        about,
        `${url} is about ${JSON.stringify(metadata.issuer)?.slice(0, 200)}, and identity.issuer is ${issuer}. They have to be the same, to the letter.`,
      );
    if (typeof metadata.jwks_uri !== 'string') return yield wrong(about, `${url} names no keys (jwks_uri).`);
    url = metadata.jwks_uri;
    for (const name of ['jwks_uri', 'token_endpoint', 'device_authorization_endpoint'])
      if (!isSafeUrl(new URL(metadata[name] ?? issuer)))
        return yield wrong(about, `${metadata[name]}, its ${name}, is plain http. Nobody can sign in.`);
    const found = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(issuerMs) });
    const { keys } = JSON.parse(await readWithin(found));
    if (!keys?.length) return yield away(about, `${url} has no keys. Nobody can sign in.`);
    if (metadata.device_authorization_endpoint === undefined)
      yield wrong(about, `${issuer} offers no sign-in with a device code, which the command line needs.`);
    else yield ok(about, `${issuer} answers.`);
    const theirs = Date.parse(answer.headers.get('date') ?? '');
    const apart = Math.abs(Date.now() - theirs);
    if (apart > clockToleranceMs)
      yield wrong(
        'clock',
        `The clocks of this machine and of ${issuer} are ${Math.round(apart / 1000)} seconds apart. Tokens are refused.`,
      );
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    yield away(about, `${url} cannot be read: ${messageOf(cause)}. Nobody can sign in.`);
  }
}

async function readWithin(answer: Response): Promise<string> {
  let text = '';
  for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (text.length > mostAnswer) throw new Error('the answer is too long');
  }
  return text;
}

/** Judges the last report of each side of a cluster. `isRunning`: a service is there that updates it. */
export function* judgeClusters(sides: readonly ClusterSideState[], isRunning: boolean): Generator<Finding> {
  const about = 'cluster';
  for (const { name, side, observedAt, failure } of sides) {
    const what = `${name}, ${side}`;
    if (failure !== null)
      yield wrong(about, `${what}: ${failure} \`andromeda admin cluster check ${name}\` says more.`);
    else if (observedAt === null) yield warn(about, `${what}: it has not reported yet.`);
    else if (isRunning && Date.now() - Date.parse(observedAt) > freshMs)
      yield wrong(
        about,
        `${what}: its last report is of ${observedAt}. Nobody is let in on a report that old.`,
      );
    else yield ok(about, `${what}: its last report is of ${observedAt}.`);
  }
}

export function* judgeTrail(
  { first, entries, lastAt, signed, accepted, keys, fault }: AuditFindings,
  own: readonly string[],
): Generator<Finding> {
  const about = 'audit trail';
  const some =
    first === 1 ? `All ${entries} entries` : `Entries ${first} to ${entries}, behind a checkpoint,`;
  const all = accepted === 0 ? some : `${some} (accepted breaks: ${accepted})`;
  const others = keys.filter((key) => !own.includes(key));
  if (fault !== undefined) yield wrong(about, fault);
  else if (others.length > 0)
    yield warn(
      about,
      `${all} fit, and some of it is signed with what is no key of this installation: ${others.join(', ')}. Are those of former keys that are gone or were stolen?`,
    );
  else yield ok(about, `${all} fit, and are signed up to entry ${signed}.`);
  const ahead = lastAt === undefined ? 0 : Date.parse(lastAt) - Date.now();
  if (ahead > clockToleranceMs)
    yield wrong(
      'clock',
      `The last entry of the audit trail is of ${lastAt}, which is to come. Set the clock of this machine.`,
    );
}

export function* checkClients(dataDir: string): Generator<Finding> {
  const about = 'clients';
  try {
    const release = readRelease(dataDir);
    if (!release) return;
    const text = `${release.files.length} executables of ${release.version} are offered`;
    if (release.version === manifest.version) yield ok(about, `${text}.`);
    else
      yield warn(
        about,
        `${text}, and the service is ${manifest.version}. Unpack those of its own release there.`,
      );
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    yield warn(about, error.message);
  }
}
