/**
 * The kubeconfig that the Platform API gives, checked, and merged into a file that holds other clusters too, where all else stays
 * as it was written. A kubeconfig names a program that kubectl runs, so one from a server is taken only in the shape that the
 * contract gives ("GET /clusters/{clusterId}/kubeconfig") and with the arguments that signing in takes.
 */
import { mkdir, readFile, realpath } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type Document, isMap, isSeq, parse, parseDocument, stringify, type YAMLSeq } from 'yaml';
import { isUuid } from '../../domain/id.ts';
import { failure } from '../exit.ts';
import { reasonOf, writeAtomically } from '../files.ts';
import { isObject, withoutSlash } from '../net/request.ts';
import { exclusively } from '../session/lock.ts';

export interface Expected {
  clusterId: string;
  issuer: string;
}

/** kubectl reads YAML 1.1, where a namespace called `no` would be something else than text. */
const forKubectl = { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', lineWidth: 0 } as const;

/** What `kubectl` runs to sign in, as it begins. */
const signIn = ['oidc-login', 'get-token'];

const flags: RegExp[] = [
  /^--oidc-client-id=[!-~]{1,256}$/,
  /^--oidc-extra-scope=[!-~]{1,256}$/,
  /^--grant-type=device-code$/,
  /^--certificate-authority-data=[A-Za-z0-9+/]{1,65536}={0,2}$/,
  /^--certificate-authority=\/[ -~]{1,1024}$/,
];
const issuerFlag = '--oidc-issuer-url=';

/** The kubeconfig as data, or what is wrong with it. */
export function parseKubeconfig(text: unknown, expected: Expected): Record<string, unknown> | string {
  let value: unknown;
  try {
    value = parse(String(text));
  } catch {
    return 'it is not YAML';
  }
  if (!hasOnly(value, ['apiVersion', 'kind', 'clusters', 'contexts', 'users', 'current-context']))
    return 'it holds something else than one cluster, one context and one user';
  const { clusterId: id } = expected;
  if (!isUuid(id)) return 'the ID of its cluster is none';
  if (value.apiVersion !== 'v1' || value.kind !== 'Config') return 'it is of another kind';
  if (value['current-context'] !== id) return 'its context is not called by the ID of the cluster';
  return (
    clusterFault(only(value.clusters, 'cluster', id)) ??
    contextFault(only(value.contexts, 'context', id), id) ??
    userFault(only(value.users, 'user', id), expected.issuer) ??
    value
  );
}

/** Written again: two YAML readers may not agree on text that the server wrote. */
export function formatKubeconfig(checked: object): string {
  return stringify(checked, forKubectl).trimEnd();
}

function isOurUser(user: unknown, issuer: string): boolean {
  const args = signInArguments(isObject(user) ? user.exec : undefined);
  return args !== undefined && namesIssuer(args, issuer);
}

/** What follows `kubectl oidc-login get-token`, where that is what is run. */
function signInArguments(exec: unknown): unknown[] | undefined {
  if (!isObject(exec) || exec.command !== 'kubectl' || !Array.isArray(exec.args)) return undefined;
  const isSignIn = isDeepStrictEqual(exec.args.slice(0, signIn.length), signIn);
  return isSignIn ? exec.args.slice(signIn.length) : undefined;
}

function clusterFault(cluster: unknown): string | undefined {
  if (!hasOnly(cluster, ['server', 'certificate-authority-data']))
    return 'it does not describe its one cluster as expected';
  const url = typeof cluster.server === 'string' ? URL.parse(cluster.server) : null;
  if (url?.protocol !== 'https:' || url.username || url.password)
    return 'its server is not at an https address';
  const authority = cluster['certificate-authority-data'];
  if (authority !== undefined && !(typeof authority === 'string' && /^[A-Za-z0-9+/]+={0,2}$/.test(authority)))
    return 'its certificate authority is not in base64';
  return undefined;
}

function contextFault(context: unknown, id: string): string | undefined {
  if (!hasOnly(context, ['cluster', 'user', 'namespace']) || context.cluster !== id || context.user !== id)
    return 'its context names something else than its cluster and its user';
  const { namespace } = context;
  const isName = typeof namespace === 'string' && /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(namespace);
  return namespace === undefined || isName ? undefined : 'its namespace is not a name';
}

function userFault(user: unknown, issuer: string): string | undefined {
  const exec = hasOnly(user, ['exec']) ? user.exec : undefined;
  const args = signInArguments(exec);
  if (!hasOnly(exec, ['apiVersion', 'command', 'args', 'interactiveMode', 'installHint']) || !args)
    return 'its user is not `kubectl oidc-login get-token`';
  const odd = args.find(
    (arg) => !String(arg).startsWith(issuerFlag) && !flags.some((flag) => flag.test(String(arg))),
  );
  if (odd !== undefined || !args.every((arg) => typeof arg === 'string'))
    return `its sign-in has an argument that is not expected: ${String(odd)}`;
  if (!namesIssuer(args, issuer)) return `its sign-in is not at ${issuer}`;
  const isKnown =
    /^client\.authentication\.k8s\.io\/v1(beta1)?$/.test(String(exec.apiVersion)) &&
    ['Never', 'IfAvailable', 'Always'].includes(String(exec.interactiveMode ?? 'Never')) &&
    typeof (exec.installHint ?? '') === 'string';
  return isKnown ? undefined : 'its sign-in is described in a way that is not expected';
}

/** Exactly one issuer, and this one: a sign-in at another issuer would send that issuer's token to the cluster. */
function namesIssuer(args: readonly unknown[], issuer: string): boolean {
  const named = args.filter((arg) => typeof arg === 'string' && arg.startsWith(issuerFlag)).map(String);
  return (
    named.length === 1 && withoutSlash(named[0]?.slice(issuerFlag.length) ?? '') === withoutSlash(issuer)
  );
}

function only(list: unknown, key: string, name: string): unknown {
  const [item, ...more] = Array.isArray(list) ? list : [];
  return more.length === 0 && hasOnly(item, ['name', key]) && item.name === name ? item[key] : undefined;
}

function hasOnly(value: unknown, keys: readonly string[]): value is Record<string, unknown> {
  return isObject(value) && Object.keys(value).every((key) => keys.includes(key));
}

const lists = ['clusters', 'contexts', 'users'] as const;

/** Merges one kubeconfig into `file`, made 0600; returns whether its context is the current one now. */
export async function mergeKubeconfig(
  file: string,
  added: Record<string, unknown>,
  { use, ...expected }: Expected & { use: boolean },
): Promise<boolean> {
  const path = resolve(file);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const target = await realpath(path).catch(() => path);
  // kubectl itself takes a lock of this name before it writes.
  return exclusively(`${target}.lock`, async () => {
    const text = await readFile(target, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw failure(`${file} cannot be read: ${reasonOf(error)}.`, error);
    });
    const { merged, isCurrent } = mergeText(text, added, { file, use, ...expected });
    await writeAtomically(target, merged, `${file} could not be written`);
    return isCurrent;
  });
}

/**
 * The text of `before` with the cluster, context and user of `ours`, which was checked. Throws when `before` is no
 * kubeconfig, or has something of that name that this program did not make.
 */
function mergeText(
  before: string,
  ours: Record<string, unknown>,
  { file, use, clusterId, issuer }: Expected & { file: string; use: boolean },
): { merged: string; isCurrent: boolean } {
  const document = parseDocument(before.trim() === '' ? 'apiVersion: v1\nkind: Config\n' : before);
  const [problem] = document.errors;
  if (problem || !isMap(document.contents))
    throw failure(`${file} is not a kubeconfig; nothing was written.${problem ? ` ${problem.code}` : ''}`);
  const there = document.toJS();
  const present = lists.flatMap((list) => itemsCalled(clusterId, there[list]));
  const users = itemsCalled(clusterId, there.users);
  if (present.length > 0 && !(users.length === 1 && isOurUser(users[0]?.user, issuer)))
    throw failure(
      `${file} has an entry called ${clusterId} that \`andromeda kubeconfig\` did not make; rename it, or name another file.`,
    );
  for (const list of lists) {
    const into = listOf(document, list, file);
    for (const item of Array.isArray(ours[list]) ? ours[list] : []) putItem(document, into, item);
  }
  const context = ours['current-context'];
  const isFree = (document.get('current-context') ?? '') === '';
  if (use || isFree) document.set('current-context', context);
  return {
    merged: document.toString(forKubectl),
    isCurrent: document.get('current-context') === context,
  };
}

function listOf(document: Document, name: string, file: string): YAMLSeq {
  const found = document.get(name);
  if (isSeq(found)) return found;
  if (found !== undefined && found !== null)
    throw failure(`${file} is not a kubeconfig; nothing was written: its ${name} are no list.`);
  document.set(name, document.createNode([]));
  return document.get(name) as YAMLSeq;
}

function itemsCalled(name: string, list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter((item) => isObject(item) && item.name === name) : [];
}

function putItem(document: Document, list: YAMLSeq, item: unknown): void {
  const name = isObject(item) ? item.name : undefined;
  const index = list.items.findIndex((one) => isMap(one) && one.get('name') === name);
  if (index < 0) list.add(document.createNode(item));
  else list.set(index, document.createNode(item));
  list.flow = false;
}
