/** A kubeconfig file that holds other clusters too: ours is added or replaced, all else stays as it was written. */
import { mkdir, readFile, realpath } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { type Document, isMap, isSeq, parseDocument, type YAMLSeq } from 'yaml';
import { writeAtomically } from '../atomic-file.ts';
import { failure } from '../exit.ts';
import { isObject } from '../net/request.ts';
import { exclusively } from '../session/lock.ts';
import { reasonOf } from '../yaml-file.ts';
import { type Expected, forKubectl, isOurUser } from './kubeconfig-shape.ts';

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
    await writeAtomically(target, merged).catch((error: NodeJS.ErrnoException) => {
      throw failure(`${file} could not be written: ${reasonOf(error)}.`, error);
    });
    return isCurrent;
  });
}

/**
 * The text of `before` with the cluster, context and user of `ours`, which was checked. Throws when `before` is no
 * kubeconfig, or has something of that name that this program did not make.
 */
export function mergeText(
  before: string,
  ours: Record<string, unknown>,
  { file, use, clusterId, issuer }: Expected & { file: string; use: boolean },
): { merged: string; isCurrent: boolean } {
  const document = before.trim() === '' ? emptyDocument() : parseDocument(before);
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
    merged: document.toString({ ...forKubectl, lineWidth: 0 }),
    isCurrent: document.get('current-context') === context,
  };
}

function emptyDocument(): Document.Parsed {
  return parseDocument('apiVersion: v1\nkind: Config\n');
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
