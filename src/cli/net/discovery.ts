/** Reads an environment's metadata: section "Authentication" of the contract, in the format of RFC 9728. */
import manifest from '../../../package.json' with { type: 'json' };
import { isSafeUrl } from '../../lib/source-address.ts';
import { failure } from '../exit.ts';
import { getJson, urlAt, withoutSlash } from './request.ts';

/** A service's version and downloads, readable without a token. */
const listPath = '/download/list.json';

/** The version of the service at `platformUrl`; undefined when it cannot be read. Never throws. */
export async function offeredVersion(platformUrl: string, timeoutMs: number): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const { status, body } = await getJson({ url: urlAt(platformUrl, listPath), signal });
    const version = status === 200 ? body?.version : undefined;
    return typeof version === 'string' && /^\d+\.\d+\.\d+[\w.+-]{0,40}$/.test(version) ? version : undefined;
  } catch {
    return undefined;
  }
}

export function differenceNotice(
  platformUrl: string,
  version: string | undefined,
  { own = manifest.version, platform = process.platform as NodeJS.Platform } = {},
): string | undefined {
  if (version === undefined || version === own) return undefined;
  return `This client is ${own}, and the service at ${platformUrl} is ${version}. ${installLine(platformUrl, platform)} installs the client that fits it.`;
}

/** The shell command, in backquotes, that installs a service's client. */
export function installLine(platformUrl: string, platform: NodeJS.Platform = process.platform): string {
  return platform === 'win32'
    ? `\`irm ${platformUrl}/install.ps1 | iex\``
    : `\`curl -fsSL ${platformUrl}/install.sh | sh\``;
}

export interface Environment {
  platformUrl: string;
  businessUrl: string;
  issuer: string;
  clientId: string;
  scope: string;
}

export const metadataPath = '/.well-known/oauth-protected-resource';

/** Reads the environment. `given`: the Platform URL, or the console's URL, which leads to it. */
export async function discover(given: string, signal?: AbortSignal): Promise<Environment> {
  const found = await getJson({ url: urlAt(given, metadataPath), signal });
  if (found.status === 200 && found.body) return readEnvironment(given, found);
  const { body } = await getJson({ url: urlAt(given, listPath), signal });
  const platformUrl = isSafe(body?.platform) ? withoutSlash(body.platform) : given;
  if (platformUrl === given) return readEnvironment(given, found);
  return readEnvironment(platformUrl, await getJson({ url: urlAt(platformUrl, metadataPath), signal }));
}

function readEnvironment(
  platformUrl: string,
  { status, body }: Awaited<ReturnType<typeof getJson>>,
): Environment {
  const url = urlAt(platformUrl, metadataPath);
  if (status !== 200) throw failure(`${url.href} answered ${status}; is this the platform URL?`);
  if (!body) throw failure(`${url.href} did not answer with a JSON object; is this the platform URL?`);
  const environment = parseEnvironment(platformUrl, body);
  if (typeof environment === 'string') throw failure(`${url.href} cannot be used: ${environment}.`);
  return environment;
}

/** Returns the environment, or the fault of the document as text. */
export function parseEnvironment(platformUrl: string, body: Record<string, unknown>): Environment | string {
  const { resource, authorization_servers: issuers, svc_audiences: audiences } = body;
  const { svc_business_url: business, svc_cli_client_id: clientId, svc_scopes: scopes } = body;
  const methods = body.bearer_methods_supported;
  // RFC 9728 §3.3: a document about another resource must not be used, because one site could then pose as another.
  if (typeof resource !== 'string' || withoutSlash(resource) !== platformUrl)
    return '`resource` is not the URL that was asked for';
  const issuer = isStrings(issuers) ? issuers[0] : undefined;
  if (!isSafe(issuer)) return '`authorization_servers` names no issuer at an https address';
  if (!isSafe(business)) return '`svc_business_url` is not an https address';
  if (!isStrings(audiences)) return '`svc_audiences` is not a list of audiences';
  if (typeof clientId !== 'string' || clientId === '') return '`svc_cli_client_id` is missing';
  if (methods !== undefined && !(isStrings(methods) && methods.includes('header')))
    return '`bearer_methods_supported` leaves out `header`';
  if (scopes !== undefined && !isStrings(scopes)) return '`svc_scopes` is not a list of scopes';
  return {
    platformUrl,
    businessUrl: withoutSlash(business),
    issuer,
    clientId,
    scope: (scopes ?? defaultScopes(audiences)).join(' '),
  };
}

/** Contract, "Authentication" 4. The names are scopes of the identity provider Zitadel. */
function defaultScopes(audiences: string[]): string[] {
  const own = audiences.map((audience) => `urn:zitadel:iam:org:project:id:${audience}:aud`);
  return ['openid', 'profile', 'email', 'offline_access', ...own];
}

function isSafe(value: unknown): value is string {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  return url !== null && isSafeUrl(url) && !url.username && !url.password && !url.search && !url.hash;
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string' && item !== '');
}
