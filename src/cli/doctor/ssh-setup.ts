/** Checks ssh on this machine: the program, the person's keys, and the agent that holds some of them. */
import { parseSshPublicKey } from '../../domain/access/ssh-key.ts';
import type { EnvironmentOptions } from '../environment.ts';
import {
  adviseNewKey,
  asWord,
  hasPrivateFile,
  type LocalKey,
  listKeys,
  listLocalKeys,
  privateFileOf,
} from '../everyday/keys.ts';
import { createClient } from '../net/api.ts';
import { askProgram, type Finding, findingsAbout, sentenceOf } from './finding.ts';

const onKey = findingsAbout('key');
const onSsh = findingsAbout('ssh');

/** The first version with Ed25519 keys. Keys in security keys need 8.2, the version that created them. */
const oldestSsh = 6.5;

type AgentKeys = ReadonlySet<string> | undefined;

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
    const known = new Set(keys.map(({ fingerprint }) => fingerprint));
    yield await checkKeys(new Set(usable.map(({ fingerprint }) => fingerprint)), known);
  } catch (error) {
    yield onKey.wrong(sentenceOf(error), 'Try again; if it stays, tell the operator of the service.');
  }
}

async function checkSsh(): Promise<Finding> {
  const { status, stdout, stderr } = await askProgram('ssh', ['-V'], 30_000);
  if (status === undefined)
    return onSsh.wrong(
      'There is no ssh on this machine.',
      process.platform === 'win32'
        ? 'Install it: Settings → System → Optional features → OpenSSH Client.'
        : 'Install the OpenSSH client.',
    );
  const said = (stderr || stdout).split(/[\r\n,]/)[0] ?? '';
  const version = /OpenSSH_(?:for_Windows_)?(\d+\.\d+)/.exec(said)?.[1];
  if (version === undefined)
    return onSsh.warn(
      `${said || 'What there is'} is not OpenSSH.`,
      'Install OpenSSH if `andromeda ssh` fails.',
    );
  if (Number(version) < oldestSsh)
    return onSsh.wrong(
      `${said} is older than ${oldestSsh}, and knows no Ed25519 keys.`,
      'Install a newer OpenSSH.',
    );
  return onSsh.ok(said);
}

/** Checks that ssh can use a registered key on this machine. `known` also has keys that no longer give access. */
async function checkKeys(registered: ReadonlySet<string>, known: ReadonlySet<string>): Promise<Finding> {
  const another = await adviseNewKey(known);
  if (registered.size === 0) return onKey.wrong('You have no key registered that lets you in.', another);
  const [local, agent] = await Promise.all([listLocalKeys(), agentKeys()]);
  const held = [...registered].find((fingerprint) => agent?.has(fingerprint));
  if (held !== undefined) return onKey.ok(`${held} is registered, and in the agent.`);
  const mine = local.filter(({ fingerprint }) => registered.has(fingerprint));
  const there = await Promise.all(mine.map(hasPrivateFile));
  const key = mine.find((_, index) => there[index]);
  if (key) return checkPrivateKey(key, agent);
  const [first] = mine;
  const agentText = agent ? 'not in the agent' : 'no agent runs';
  if (first)
    return onKey.wrong(
      `${first.file} is registered, but its private key ${privateFileOf(first)} is not here, and ${agent ? 'it is ' : ''}${agentText}.`,
      `Bring that file back, or give the agent the key from where it lies (\`ssh-add FILE\`), or make a new one: ${another}`,
    );
  const where = agent ? 'in ~/.ssh or in the agent' : `in ~/.ssh, and ${agentText}`;
  return onKey.wrong(`None of your ${registered.size} registered keys is ${where}.`, another);
}

async function checkPrivateKey(key: LocalKey, agent: AgentKeys): Promise<Finding> {
  const file = privateFileOf(key);
  if (await hasPassphrase(file))
    return onKey.warn(
      `${file} is registered and not in the agent: ssh asks for its passphrase each time.`,
      `\`ssh-add ${asWord(file)}\`${agent ? '' : ', once an agent runs (`eval "$(ssh-agent)"`)'}`,
    );
  return onKey.ok(`${file} (${key.fingerprint}) is registered.`);
}

export async function hasPassphrase(file: string): Promise<boolean> {
  // With an empty passphrase given, ssh-keygen does not prompt.
  const { stderr } = await askProgram('ssh-keygen', ['-y', '-P', '', '-f', file], 15_000);
  return /passphrase/i.test(stderr);
}

async function agentKeys(): Promise<AgentKeys> {
  const { status, stdout } = await askProgram('ssh-add', ['-L'], 15_000);
  // Status 1: the agent holds no keys.
  if (status !== 0 && status !== 1) return undefined;
  const keys = stdout.split(/\r?\n/).flatMap((line) => {
    try {
      return [parseSshPublicKey(line, { securityKeys: true }).fingerprint];
    } catch {
      return []; // another key type
    }
  });
  return new Set(keys);
}
