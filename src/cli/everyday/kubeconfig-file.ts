/**
 * The kubeconfig that the Platform API gives, checked, and merged into a file that holds other clusters too, where all else stays
 * as it was written. A kubeconfig names a program that kubectl runs, so one from a server is taken only in the shape that the
 * contract gives ("GET /clusters/{clusterId}/kubeconfig") and with the arguments that signing in takes.
 */
import { mkdir, readFile, readlink, realpath } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { isMap, isNode, isScalar, isSeq, parse, parseDocument, stringify, type YAMLMap, YAMLSeq } from 'yaml';
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

const signIn = ['oidc-login', 'get-token'];

const flags: RegExp[] = [
  /^--oidc-client-id=[!-~]{1,256}$/,
  /^--oidc-extra-scope=[!-~]{1,256}$/,
  /^--grant-type=device-code$/,
  /^--certificate-authority-data=[A-Za-z0-9+/]{1,65536}={0,2}$/,
  /^--certificate-authority=\/[ -~]{1,1024}$/,
];
const issuerFlag = '--oidc-issuer-url=';

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
  const target = await endOf(path);
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
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

/** Where links lead, which stay ones also where what they name is not there yet. */
async function endOf(path: string, links = 40): Promise<string> {
  const to = links > 0 ? await readlink(path).catch(() => undefined) : undefined;
  return to === undefined ? realpath(path).catch(() => path) : endOf(resolve(dirname(path), to), links - 1);
}

/**
 * The text of `before` with the cluster, context and user of `ours`, which was checked; all else is as it was, to the byte. Throws
 * when `before` is no kubeconfig, or has something of that name that this program did not make.
 */
function mergeText(
  before: string,
  ours: Record<string, unknown>,
  { file, use, clusterId, issuer }: Expected & { file: string; use: boolean },
): { merged: string; isCurrent: boolean } {
  const text = /^\s*(\{\s*\}\s*)?$/.test(before)
    ? 'apiVersion: v1\nkind: Config\n'
    : before.replace(/[^\n]$/, '$&\n');
  const document = parseDocument(text);
  const { contents: root } = document;
  const [problem] = document.errors;
  if (problem || !isMap(root))
    throw failure(`${file} is not a kubeconfig; nothing was written.${problem ? ` ${problem.code}` : ''}`);
  const there = document.toJS();
  const present = lists.flatMap((list) => itemsCalled(clusterId, there[list]));
  const users = itemsCalled(clusterId, there.users);
  if (present.length > 0 && !(users.length === 1 && isOurUser(users[0]?.user, issuer)))
    throw failure(
      `${file} has an entry called ${clusterId} that \`andromeda kubeconfig\` did not make; rename it, or name another file.`,
    );
  const odd = lists.find((list) => !isSeq(root.get(list) ?? new YAMLSeq()));
  if (odd !== undefined)
    throw failure(`${file} is not a kubeconfig; nothing was written: its ${odd} are no list.`);
  const context = ours['current-context'];
  const isCurrent = use || [context, '', null, undefined].includes(there['current-context']);
  const wanted = isCurrent ? [...lists, 'current-context'] : lists;
  const edits = wanted.flatMap((name) => editsFor({ text, root }, name, ours[name]));
  return { merged: applied(text, edits), isCurrent };
}

interface Edit {
  from: number;
  to: number;
  text: string;
}

/** From the last to the first; of two at one position, the later stands behind the earlier. */
function applied(text: string, edits: readonly Edit[]): string {
  const inOrder = edits.toReversed().sort((a, b) => b.from - a.from);
  return inOrder.reduce((all, { from, to, text: put }) => all.slice(0, from) + put + all.slice(to), text);
}

interface Source {
  text: string;
  root: YAMLMap;
}

/** What a key of the file becomes: a list has each item of `value`, and another value is `value`. */
function editsFor(source: Source, name: string, value: unknown): Edit[] {
  const { text, root } = source;
  const pair = root.items.find(({ key }) => isScalar(key) && key.value === name);
  const margin = columnOf(text, rangeOf(root).from);
  if (!pair) {
    const last = root.items.at(-1);
    const at = root.flow && last ? rangeOf(last.value ?? last.key).to : rangeOf(root).to;
    if (!root.flow) return [{ from: at, to: at, text: `${margin}${block({ [name]: value }, margin)}\n` }];
    return [{ from: at, to: at, text: `, ${JSON.stringify(name)}: ${JSON.stringify(value)}` }];
  }
  // `{clusters}`: in a map in braces, a key may stand alone.
  if (pair.value === null) {
    const { to: at } = rangeOf(pair.key);
    return [{ from: at, to: at, text: `: ${JSON.stringify(value)}` }];
  }
  const list = pair.value;
  if (isSeq(list) && list.items.length > 0 && Array.isArray(value))
    return value.flatMap((item) => editOfItem(text, list, item));
  const { from, to } = rangeOf(list);
  const put =
    Array.isArray(value) && !root.flow ? `\n${margin}${block(value, margin)}` : JSON.stringify(value);
  // Where there was no value, a colon and a comment may touch it.
  return [{ from, to, text: from === to ? ` ${put} ` : put }];
}

function editOfItem(text: string, list: YAMLSeq, item: { name: string }): Edit[] {
  const old = list.items.find((one) => isMap(one) && one.get('name') === item.name);
  if (isMap(old)) {
    if (isDeepStrictEqual(old.toJSON(), item)) return [];
    const { from, to } = rangeOf(old);
    const end = text[to - 1] === '\n' ? '\n' : '';
    const margin = ' '.repeat(columnOf(text, from).length);
    return [{ from, to, text: list.flow ? JSON.stringify(item) : `${block(item, margin)}${end}` }];
  }
  const { from: start, to: end } = rangeOf(list);
  const at = list.flow ? rangeOf(list.items.at(-1)).to : end;
  const margin = columnOf(text, start);
  const put = list.flow ? `, ${JSON.stringify(item)}` : `${margin}${block([item], margin)}\n`;
  return [{ from: at, to: at, text: put }];
}

function block(value: unknown, margin: string): string {
  return stringify(value, forKubectl).trimEnd().replaceAll('\n', `\n${margin}`);
}

/** What stands before a position in its line. */
function columnOf(text: string, at: number): string {
  return text.slice(text.lastIndexOf('\n', at - 1) + 1, at);
}

function rangeOf(node: unknown): { from: number; to: number } {
  const [from, to] = (isNode(node) && node.range) || [0, 0];
  return { from, to };
}

function itemsCalled(name: string, list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter((item) => isObject(item) && item.name === name) : [];
}
