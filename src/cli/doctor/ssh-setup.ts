/** What lies on this machine for ssh: the program, the person's keys, and the agent that holds some of them. */
import { readFile, stat } from 'node:fs/promises';
import { parseSshPublicKey } from '../../domain/ssh-key.ts';
import type { EnvironmentOptions } from '../environment.ts';
import { listKeys } from '../everyday/keys.ts';
import { listLocalKeys } from '../everyday/local-keys.ts';
import { createClient } from '../net/api.ts';
import { type Finding, ok, warn, wrong } from './finding.ts';
import { askProgram } from './program-output.ts';
import { sentenceOf } from './sentence.ts';

/** The first that knows Ed25519 keys, which are the only ones that the service takes. */
const oldestSsh = 6.5;

/** The fingerprints of the agent's Ed25519 keys; undefined where there is no agent. */
type AgentKeys = ReadonlySet<string> | undefined;

/** Yields what is so. `signedIn`: how to ask for the registered keys. */
export async function* checkSshSetup(signedIn: EnvironmentOptions | false): AsyncGenerator<Finding> {
  yield await checkSsh();
  if (signedIn === false) return;
  try {
    const { keys } = await listKeys(createClient(signedIn, 'andromeda doctor').api);
    const now = Date.now();
    const usable = keys.filter(
      ({ lifecycle_state: state, lapses_at: at }) =>
        state === 'active' && (at === undefined || Date.parse(at) > now),
    );
    yield await checkKeys(new Set(usable.map(({ fingerprint }) => fingerprint)));
  } catch (error) {
    yield wrong('key', sentenceOf(error), 'Try again; if it stays, tell whoever runs the service.');
  }
}

async function checkSsh(): Promise<Finding> {
  const { status, stdout, stderr } = await askProgram('ssh', ['-V'], 30_000);
  if (status === undefined)
    return wrong(
      'ssh',
      'There is no ssh on this machine.',
      process.platform === 'win32'
        ? 'Install it: Settings → System → Optional features → OpenSSH Client.'
        : 'Install the OpenSSH client.',
    );
  const said = (stderr || stdout).split(/[\r\n,]/)[0] ?? '';
  const version = /OpenSSH_(?:for_Windows_)?(\d+\.\d+)/.exec(said)?.[1];
  if (version === undefined)
    return warn(
      'ssh',
      `${said || 'What there is'} is not OpenSSH.`,
      'Install OpenSSH if `andromeda ssh` fails.',
    );
  if (Number(version) < oldestSsh)
    return wrong(
      'ssh',
      `${said} is older than ${oldestSsh}, and knows no Ed25519 keys.`,
      'Install a newer OpenSSH.',
    );
  return ok('ssh', said);
}

/** Whether this machine has a key that is registered, and ssh can use it. */
async function checkKeys(registered: ReadonlySet<string>): Promise<Finding> {
  const [local, agent] = await Promise.all([listLocalKeys(), agentKeys()]);
  if (registered.size === 0) {
    const [first] = local;
    const fix = first
      ? `\`andromeda keys add ${first.file}\``
      : '`ssh-keygen -t ed25519`, and then `andromeda keys add`';
    return wrong('key', 'You have no key registered that lets you in.', fix);
  }
  const held = [...registered].find((fingerprint) => agent?.has(fingerprint));
  if (held !== undefined) return ok('key', `${held} is registered, and in the agent.`);
  const key = local.find(({ fingerprint }) => registered.has(fingerprint));
  const file = key?.file.replace(/\.pub$/, '');
  if (!key || file === undefined || !(await isFile(file))) {
    const fix = local[0]
      ? `\`andromeda keys add ${local[0].file}\``
      : '`ssh-keygen -t ed25519`, and then `andromeda keys add`';
    const where = agent ? 'in ~/.ssh or in the agent' : 'in ~/.ssh, and no agent runs';
    return wrong('key', `None of your ${registered.size} registered keys is ${where}.`, fix);
  }
  if (await isOpenToOthers(file))
    return wrong('key', `${file} can be read by others, so ssh does not use it.`, `\`chmod 600 ${file}\``);
  if (await hasPassphrase(file))
    return warn(
      'key',
      `${file} is registered and not in the agent: ssh asks for its passphrase each time.`,
      `\`ssh-add ${file}\`${agent ? '' : ', once an agent runs (`eval "$(ssh-agent)"`)'}`,
    );
  return ok('key', `${file} (${key.fingerprint}) is registered.`);
}

async function agentKeys(): Promise<AgentKeys> {
  const { status, stdout } = await askProgram('ssh-add', ['-L'], 15_000);
  // 1: it holds none.
  if (status !== 0 && status !== 1) return undefined;
  const keys = stdout.split(/\r?\n/).flatMap((line) => {
    try {
      return [parseSshPublicKey(line).fingerprint];
    } catch {
      return []; // of another kind
    }
  });
  return new Set(keys);
}

async function isFile(file: string): Promise<boolean> {
  return stat(file).then(
    (found) => found.isFile(),
    () => false,
  );
}

/** As ssh judges it; Windows has access lists in place of modes. */
async function isOpenToOthers(file: string): Promise<boolean> {
  if (process.platform === 'win32') return false;
  return ((await stat(file)).mode & 0o077) !== 0;
}

/** A private key in OpenSSH's form names its cipher at the beginning (PROTOCOL.key of OpenSSH). */
async function hasPassphrase(file: string): Promise<boolean> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const body = /BEGIN OPENSSH PRIVATE KEY-----\s+([A-Za-z0-9+/=\s]+)-----END/.exec(text)?.[1] ?? '';
  const bytes = Buffer.from(body, 'base64');
  const magic = 'openssh-key-v1\0';
  if (bytes.subarray(0, magic.length).toString('latin1') !== magic) return false;
  const length = bytes.length >= magic.length + 4 ? bytes.readUInt32BE(magic.length) : 0;
  return bytes.subarray(magic.length + 4, magic.length + 4 + length).toString('latin1') !== 'none';
}
