/**
 * Checks the kubeconfig of the Platform API, and merges it into a file with other clusters, whose text stays as it is. A
 * kubeconfig names a program that kubectl runs, so one from a server is accepted only in the contract's form ("GET
 * /clusters/{clusterId}/kubeconfig") and with the arguments of a sign-in.
 */

import { mkdir, readFile, readlink, realpath } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { isMap, isNode, isSeq, parse, parseDocument, stringify, YAMLSeq } from 'yaml';
import { isUuid } from '../../domain/id.ts';
import { fileReason } from '../../lib/error-message.ts';
import { readValue } from '../../lib/yaml-lines.ts';
import { failure } from '../exit.ts';
import { writeAtomically } from '../files.ts';
import { isObject, withoutSlash } from '../net/request.ts';
import { exclusively } from '../session/lock.ts';

export interface Expected {
  clusterId: string;
  issuer: string;
}

/** kubectl reads YAML 1.1, where an unquoted namespace `no` would be a boolean. */
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

/** Serialized anew, because two YAML parsers may interpret the server's text differently. */
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

/** Merges one kubeconfig into `file`, with mode 0600. Returns whether its context is now the current one. */
export async function mergeKubeconfig(
  file: string,
  added: Record<string, unknown>,
  { use, ...expected }: Expected & { use: boolean },
): Promise<boolean> {
  const path = resolve(file);
  const target = await endOf(path);
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  // kubectl itself creates a lock of this name before it writes.
  return exclusively(`${target}.lock`, async () => {
    const text = await readFile(target, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw failure(`${file} cannot be read: ${fileReason(error)}.`, error);
    });
    const { merged, isCurrent } = mergeText(text, added, { file, use, ...expected });
    await writeAtomically(target, merged, `${file} could not be written`);
    return isCurrent;
  });
}

/** The end of a chain of symbolic links, also if the last target does not exist yet: the links stay. */
async function endOf(path: string, links = 40): Promise<string> {
  const to = links > 0 ? await readlink(path).catch(() => undefined) : undefined;
  return to === undefined ? realpath(path).catch(() => path) : endOf(resolve(dirname(path), to), links - 1);
}

/**
 * The text of `before` with the cluster, context and user of `ours`, which was checked; the rest keeps its meaning. Throws
 * when `before` is no kubeconfig, or has an entry of that name that this program did not make.
 */
function mergeText(
  before: string,
  ours: Record<string, unknown>,
  { file, use, clusterId, issuer }: Expected & { file: string; use: boolean },
): { merged: string; isCurrent: boolean } {
  const text = before
    .replace(/^\uFEFF/, '')
    .replaceAll('\r\n', '\n')
    .replace(/[^\n]$/, '$&\n');
  const document = readDocument(text);
  const there = meaningOf(text);
  if (!isObject(there)) {
    const { fault } = readValue(document, true);
    throw failure(`${file} is not a kubeconfig; nothing was written.${fault ? ` ${file}${fault}` : ''}`);
  }
  const present = lists.flatMap((list) => itemsCalled(clusterId, there[list]));
  const users = itemsCalled(clusterId, there.users);
  if (present.length > 0 && !(users.length === 1 && isOurUser(users[0]?.user, issuer)))
    throw failure(
      `${file} has an entry called ${clusterId} that \`andromeda kubeconfig\` did not make; rename it, or name another file.`,
    );
  const odd = lists.find((list) => !isSeq(document.get(list) ?? new YAMLSeq()));
  if (odd !== undefined)
    throw failure(`${file} is not a kubeconfig; nothing was written: its ${odd} are no list.`);
  const context = ours['current-context'];
  const isCurrent = use || [context, '', null, undefined].includes(there['current-context']);
  const isEmpty = Object.keys(there).length === 0;
  const wanted = Object.entries(ours).filter(
    ([name, value]) => isEmpty || Array.isArray(value) || (isCurrent && name === 'current-context'),
  );
  const given = { before, text, wanted };
  const merged = attempt(editText, given) ?? attempt(editJson, given) ?? attempt(editDocument, given);
  if (merged === undefined)
    throw failure(
      `${file} cannot be added to without a change to what it holds; nothing was written. Name another file.`,
    );
  return { merged, isCurrent };
}

type Edits = [name: string, value: unknown][];

/** Applies an edit to `text`; undefined if it changes the meaning of anything else in `before`. */
function attempt(
  edit: (text: string, wanted: Edits) => string,
  { before, text, wanted }: { before: string; text: string; wanted: Edits },
): string | undefined {
  try {
    const edited = edit(text, wanted);
    const after = before.includes('\r\n') ? edited.replaceAll('\n', '\r\n') : edited;
    const isSound = (['1.1', '1.2'] as const).every((version) =>
      isDeepStrictEqual(meaningOf(after, version), withOurs(meaningOf(before, version), wanted)),
    );
    return isSound ? after : undefined;
  } catch {
    return undefined; // for example an alias to a replaced node
  }
}

function readDocument(text: string, version: '1.1' | '1.2' = '1.1') {
  return parseDocument(text, { version, intAsBigInt: true });
}

function meaningOf(text: string, version?: '1.1' | '1.2'): unknown {
  const document = readDocument(text, version);
  try {
    return document.errors.length > 0 ? undefined : (document.toJS() ?? {});
  } catch {
    return undefined; // an unresolved alias or merge key
  }
}

function withOurs(there: unknown, wanted: Edits): unknown {
  const all = isObject(there) ? { ...there } : {};
  for (const [name, value] of wanted) {
    const items: unknown[] = Array.isArray(all[name]) ? all[name] : [];
    const isOurs = (one: unknown) => isObject(one) && Array.isArray(value) && one.name === value[0].name;
    const at = items.findIndex(isOurs);
    all[name] = Array.isArray(value) ? items.toSpliced(at < 0 ? items.length : at, 1, ...value) : value;
  }
  return all;
}

/** JSON stays JSON, though kubectl reads either. */
function editJson(text: string, wanted: Edits): string {
  const [, indent = '    '] = /^\{\n([ \t]+)/.exec(text) ?? [];
  return `${JSON.stringify(withOurs(JSON.parse(text), wanted), null, indent)}\n`;
}

/** Fallback for both: keeps comments, but not spaces. */
function editDocument(text: string, wanted: Edits): string {
  const document = readDocument(isMap(readDocument(text).contents) ? text : `${text}{}\n`);
  if (isMap(document.contents) && document.contents.items.length === 0) document.contents.flow = false;
  for (const [name, value] of wanted) {
    const old = document.get(name, true);
    if (isSeq(old) && Array.isArray(value)) {
      if (old.items.length === 0) old.flow = false;
      const at = old.items.findIndex((one) => isMap(one) && one.get('name') === value[0].name);
      old.items.splice(at < 0 ? old.items.length : at, 1, document.createNode(value[0]));
    } else {
      const node = document.createNode(value);
      if (isNode(old)) node.commentBefore = old.commentBefore ?? old.comment ?? null;
      document.set(name, node);
    }
  }
  return document.toString({ ...forKubectl, indentSeq: false });
}

/** Edits the text and keeps all other bytes. The result must be parsed again, as this does not handle all of YAML. */
function editText(text: string, wanted: Edits): string {
  return wanted.reduce(withValue, text);
}

function withValue(text: string, [name, value]: Edits[number]): string {
  const { contents: root } = readDocument(text);
  if (!isMap(root) || root.flow || text.includes('\t')) throw new TypeError('It is not in lines and spaces.');
  const margin = columnOf(text, rangeOf(root).from);
  const old = root.get(name, true);
  const { from, to } = rangeOf(old ?? root);
  if (!old) return replaced(text, [to, to], `${margin}${block({ [name]: value }, margin)}\n`);
  if (isSeq(old) && old.items.length > 0 && Array.isArray(value)) return withItem(text, old, value[0]);
  const put = Array.isArray(value) ? `\n${margin}${block(value, margin)}` : JSON.stringify(value);
  // The value was empty: a colon before it and a comment after it need spaces.
  return replaced(text, [from, to], from === to ? ` ${put} ` : put);
}

function withItem(text: string, list: YAMLSeq, item: { name: string }): string {
  const old = list.items.find((one) => isMap(one) && one.get('name') === item.name);
  const { from, to } = rangeOf(old ?? list);
  const column = columnOf(text, from);
  if (!isMap(old)) return replaced(text, [to, to], `${column}${block([item], column)}\n`);
  if (isDeepStrictEqual(old.toJSON(), item)) return text;
  const end = text[to - 1] === '\n' ? '\n' : '';
  return replaced(text, [from, to], `${block(item, ' '.repeat(column.length))}${end}`);
}

function replaced(text: string, [from, to]: [number, number], put: string): string {
  return text.slice(0, from) + put + text.slice(to);
}

function block(value: unknown, margin: string): string {
  return stringify(value, forKubectl).trimEnd().replaceAll('\n', `\n${margin}`);
}

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
