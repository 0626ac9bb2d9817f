import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { operations } from '../../api/generated/business.ts';
import { dayMs, disuseOf } from '../../domain/access/lapse.ts';
import { parseSshPublicKey, plainKeyType, type SshPublicKey } from '../../domain/access/ssh-key.ts';
import type { ReplyOf } from '../../domain/operation.ts';
import { visibleLine } from '../../domain/text.ts';
import { pick } from '../arguments.ts';
import { readInput } from '../files.ts';
import type { Api, Business, Reader } from '../net/api.ts';
import { type Answer, printer } from '../output.ts';
import { confirmPlan } from '../plan-text.ts';
import { homeDirectory } from '../session/local-state.ts';
import { type Noun, reads, writes, yesFlag } from '../verb.ts';

export const shell: Noun = {
  name: 'shell',
  summary: 'your login shell, on every cluster',
  verbs: [
    writes({
      usage: 'set <path>',
      summary: 'choose your login shell; nothing restarts, and open sessions keep theirs',
      example: 'shell set /bin/zsh',
      formats: ['text', 'json', 'yaml'],
      async run({ api }, path): Promise<Answer> {
        const json = await api.put('/me/login-preferences', { body: { shell: path } });
        const text = `Your login shell is ${json.shell}.`;
        return { json, text, message: 'It is in place everywhere once `andromeda wait key` has ended.' };
      },
    }),
  ],
};

type SshKey = Business['SshKey'];

type ChangedKey = ReplyOf<operations['registerSshKey']>;

function isLapsed({ lapses_at: at }: SshKey): boolean {
  return at !== undefined && Date.parse(at) <= Date.now();
}

function lapseNotice(all: readonly SshKey[]): string | undefined {
  const soon = Date.now() + 7 * dayMs;
  const ends = all.flatMap(({ lapses_at: at }) => at ?? []).filter((at) => Date.parse(at) <= soon);
  const [first] = ends.sort();
  if (first === undefined) return undefined;
  const when = Date.parse(first) <= Date.now() ? 'Since' : 'From';
  return `${when} ${first} ${ends.length === 1 ? 'one of these keys lets' : 'the first of these keys let'} you in no more; \`andromeda keys add FILE\` registers another one.`;
}

function disuseNotice(all: readonly SshKey[]): string | undefined {
  const unused = all.flatMap((key) => {
    const { created_at: createdAt, last_used_at: lastUsedAt, label, fingerprint } = key;
    const isActive = key.lifecycle_state === 'active' && !isLapsed(key);
    const disuse = isActive && disuseOf({ createdAt, lastUsedAt }, Date.now());
    return disuse ? visibleLine(`${label ?? fingerprint} was ${disuse}`) : [];
  });
  return unused.length === 0
    ? undefined
    : `${unused.join('; ')}. \`andromeda keys revoke KEY\` revokes a key that you do not need.`;
}

const table = printer<SshKey>(
  {
    FINGERPRINT: (row) => row.fingerprint,
    STATE: (row) => (isLapsed(row) ? 'lapsed' : row.lifecycle_state),
    CREATED: (row) => row.created_at,
    REVOKED: (row) => row.revoked_at,
    ID: (row) => row.id,
    ADDED_FROM: (row) => row.created_from,
    USED: (row) => row.last_used_at ?? 'never',
    USED_FROM: (row) => row.last_used_from,
    LABEL: (row) => row.label,
  },
  'You have no SSH keys; `andromeda keys add` registers one.',
);

const dropped = printer<Business['KeyCluster']>(
  { CLUSTER: (row) => row.cluster_name, DROPPED: (row) => row.dropped_at },
  'No cluster had this key when it was revoked.',
);

const waiting = 'The clusters get the change now; `andromeda wait key` ends when they have it.';

export function listKeys(api: Reader): Promise<ReplyOf<operations['listSshKeys']>> {
  return api.get('/me/ssh-keys');
}

export function registerKey(api: Api, publicKey: string, about: string): Promise<ChangedKey> {
  return api.post('/me/ssh-keys', { body: { public_key: publicKey }, about });
}

function pickKey(all: readonly SshKey[], wanted: string): SshKey {
  return pick(['key of yours', 'keys of yours'], all, wanted, ({ fingerprint, id, label }) => [
    fingerprint,
    id,
    ...(label === undefined ? [] : [label]),
  ]);
}

function changed(json: ChangedKey): Answer {
  return { json, text: table.one(json.ssh_key).text, message: waiting };
}

export function readKeyPlan(api: Reader, revoke?: string): Promise<Business['MemberPlan']> {
  return api.get('/me/ssh-keys/plan', { query: revoke === undefined ? {} : { revoke } });
}

export const keys: Noun = {
  name: 'keys',
  summary: 'the SSH keys you log in with',
  verbs: [
    reads({
      usage: 'list',
      summary: 'your SSH keys, revoked ones too',
      async run({ api }) {
        const json = await listKeys(api);
        const notices = [lapseNotice(json.keys), disuseNotice(json.keys)].filter(Boolean);
        return { ...table.many(json, json.keys), ...(notices.length > 0 && { message: notices.join('\n') }) };
      },
    }),
    reads({
      usage: 'clusters <key>',
      summary: 'which clusters have dropped a revoked key, and when',
      example: 'keys clusters SHA256:uNiVztksCsDhcc0u9e8BrrQXVUpKZIDTMczCvj3tD2s',
      async run({ api }, wanted = '') {
        const { id } = pickKey((await listKeys(api)).keys, wanted);
        const json = await api.get('/me/ssh-keys/{keyID}/clusters', { path: { keyID: id } });
        return dropped.many(json, json.clusters);
      },
    }),
    writes<{ yes?: true }>({
      usage: 'add [file]',
      summary: 'register an Ed25519 public key: a file, - for standard input (~/.ssh/id_ed25519.pub)',
      example: 'keys add ~/.ssh/id_ed25519.pub',
      flags: [yesFlag],
      async run({ api, options }, file = join(sshDirectory(), 'id_ed25519.pub')) {
        // The service decides whether it accepts keys in security keys.
        const { material, comment } = parseSshPublicKey(await readInput(file), { securityKeys: true });
        await confirmPlan(await readKeyPlan(api), options);
        return changed(await registerKey(api, `${material} ${comment}`.trim(), file));
      },
    }),
    writes({
      usage: 'rename <key> <label>',
      summary: 'set what a key is called, by its fingerprint, ID or label; at first that is its comment',
      example: "keys rename SHA256:uNiVztksCsDhcc0u9e8BrrQXVUpKZIDTMczCvj3tD2s 'laptop at work'",
      async run({ api }, wanted = '', label = '') {
        const { id: keyID } = pickKey((await listKeys(api)).keys, wanted);
        const json = await api.put('/me/ssh-keys/{keyID}/label', { path: { keyID }, body: { label } });
        return { json, text: table.one(json.ssh_key).text };
      },
    }),
    writes<{ yes?: true }>({
      usage: 'revoke <key>',
      summary: 'revoke a key, by fingerprint, ID or label, for good; sessions that use it are closed',
      example: "keys revoke SHA256:uNiVztksCsDhcc0u9e8BrrQXVUpKZIDTMczCvj3tD2s --reason 'lost laptop'",
      flags: [yesFlag],
      async run({ api, options }, wanted = '') {
        const { id: keyID } = pickKey((await listKeys(api)).keys, wanted);
        await confirmPlan(await readKeyPlan(api, keyID), options);
        return changed(await api.post('/me/ssh-keys/{keyID}/revoke', { path: { keyID } }));
      },
    }),
  ],
};

export interface LocalKey extends SshPublicKey {
  /** The public key's file; the private key is next to it, without `.pub`. */
  file: string;
}

export function sshDirectory(): string {
  return join(homeDirectory(), '.ssh');
}

export async function listLocalKeys(): Promise<LocalKey[]> {
  const names = await readdir(sshDirectory()).catch(() => []);
  const usual = 'id_ed25519.pub';
  const files = names
    .filter((name) => name.endsWith('.pub'))
    .sort((a, b) => Number(b === usual) - Number(a === usual) || a.localeCompare(b))
    .map((name) => join(sshDirectory(), name));
  const keys = await Promise.all(files.map(readKey));
  return keys.filter((key) => key !== undefined);
}

export async function findIdentityFile(fingerprints: readonly string[]): Promise<string | undefined> {
  for (const key of await listLocalKeys()) {
    const file = privateFileOf(key);
    if (fingerprints.includes(key.fingerprint) && (await readFile(file).then(Boolean, () => false)))
      return file;
  }
  return undefined;
}

export function isPlain({ type }: LocalKey): boolean {
  return type === plainKeyType;
}

export function privateFileOf({ file }: LocalKey): string {
  return file.replace(/\.pub$/, '');
}

async function readKey(file: string): Promise<LocalKey | undefined> {
  try {
    return { ...parseSshPublicKey(await readFile(file, 'utf8'), { securityKeys: true }), file };
  } catch {
    return undefined; // another key type, or unreadable
  }
}

/** The commands that register another key. `known`: fingerprints of all keys that were ever registered. */
export async function adviseNewKey(known: ReadonlySet<string>): Promise<string> {
  for (const key of await listLocalKeys())
    if (isPlain(key) && !known.has(key.fingerprint) && (await hasPrivateFile(key)))
      return `\`andromeda keys add ${asWord(key.file)}\``;
  const name = await freeName();
  return `\`ssh-keygen -t ed25519 -f ${asWord(name)}\`, and then \`andromeda keys add ${asWord(`${name}.pub`)}\``;
}

export function hasPrivateFile(key: LocalKey): Promise<boolean> {
  return stat(privateFileOf(key)).then(
    (found) => found.isFile(),
    () => false,
  );
}

async function freeName(): Promise<string> {
  const taken = await readdir(sshDirectory()).catch((): string[] => []);
  for (let number = 1; ; number++) {
    const name = number === 1 ? 'id_ed25519' : `id_ed25519_${number}`;
    if (!taken.includes(name) && !taken.includes(`${name}.pub`)) return join(sshDirectory(), name);
  }
}

export function asWord(file: string): string {
  if (process.platform === 'win32') return file.includes(' ') ? `"${file}"` : file;
  return /^[\w@%+=:,./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;
}
