/**
 * `andromeda admin key`: the service's own keys, and how one takes the place of another. It works on the host, on the files of the
 * data directory, beside a service or without one; the service takes up what is there when it starts or is reloaded.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../config/index.ts';
import { DomainError } from '../domain/error.ts';
import {
  type KeyKind,
  type KeyRotationState,
  type KeyStep,
  type KnownKey,
  prematureKeyStep,
  refusalOfKeyStep,
} from '../domain/key-rotation.ts';
import {
  announceSigningKey,
  dropSigningKey,
  loadKeys,
  signingKeyIds,
  switchSigningKey,
  switchSigningKeyBack,
} from '../identity/issuer/keys.ts';
import { accessTokenSeconds, idTokenSeconds } from '../identity/issuer/lifetimes.ts';
import { ownAccount } from '../lib/own-account.ts';
import {
  announceSshKey,
  loadSshKeySet,
  retireSshKey,
  switchSshKey,
  switchSshKeyBack,
  withdrawSshKey,
} from '../ssh/key-set.ts';
import { appendAuditEntry } from '../store/audit.ts';
import { openStore, type Store } from '../store/index.ts';
import { readKeysInUse } from '../store/keys-in-use.ts';
import { systemUserId } from '../store/people.ts';
import { becomeOwnerOf } from './account.ts';
import { findConfig } from './installation.ts';
import { runCommand } from './run-command.ts';

export interface KeyOptions {
  config?: string;
  /** Whether a step is taken although not everybody knows the key yet. */
  force?: boolean;
}

/** Clocks of those who check tokens differ by so much, as they allow. */
const toleranceMs = 60_000;
const signedMs = Math.max(accessTokenSeconds, idTokenSeconds) * 1000 + toleranceMs;
const sshFiles = { host: 'gateway_host_ed25519', client: 'gateway_client_ed25519' };

const titles: Record<KeyKind, string> = {
  host: 'host     what the SSH gateway shows to people',
  client: 'client   what the SSH gateway shows to login nodes',
  issuer: 'issuer   what the built-in sign-in signs tokens with',
};

/** What lies on disk of one kind. */
interface HeldKeys extends KeyRotationState {
  /** The lines of public keys, where somebody may need them. */
  lines: Partial<Record<'next' | 'previous', string>>;
}

/** Prints which keys there are. Resolves to the exit status. */
export function listKeys(options: KeyOptions): Promise<number> {
  return runCommand(async () => {
    const dataDir = openInstallation(options);
    const parts: string[] = [];
    for (const kind of kindsOf(dataDir)) parts.push(describe(kind, await readHeld(dataDir, kind)));
    return parts.join('\n');
  });
}

/** Takes one step with one key, and writes it to the audit trail. Resolves to the exit status. */
export function stepKey(step: KeyStep, kind: KeyKind, options: KeyOptions): Promise<number> {
  return runCommand(async () => {
    const dataDir = openInstallation(options);
    if (!kindsOf(dataDir).includes(kind))
      throw new DomainError('not_found', `There is no such key in ${dataDir} yet; the first start makes it.`);
    const store = await openStore(dataDir, { beside: true });
    try {
      const before = await readHeld(dataDir, kind);
      await refuse(step, kind, before, store, options.force ?? false);
      // First: a change that nobody wrote down is worse than an entry about one that was cut off.
      await writeEntry(store, step, kind, before);
      await take(step, kind, dataDir);
    } finally {
      await store.close();
    }
    return `${describe(kind, await readHeld(dataDir, kind))}${nextSteps(step, kind)}`;
  });
}

function openInstallation({ config }: KeyOptions): string {
  const { dataDir } = readConfig(findConfig(config));
  becomeOwnerOf(dataDir);
  return dataDir;
}

/** Of which there are any; the issuer's are made where it is used. */
function kindsOf(dataDir: string): KeyKind[] {
  const gateway = (['host', 'client'] as const).filter((kind) =>
    existsSync(join(dataDir, 'keys', sshFiles[kind])),
  );
  return [...gateway, ...(existsSync(join(dataDir, 'issuer-keys.json')) ? (['issuer'] as const) : [])];
}

async function readHeld(dataDir: string, kind: KeyKind): Promise<HeldKeys> {
  const inUse = readKeysInUse(dataDir)[kind];
  if (kind === 'issuer') return { ...signingKeyIds(await loadKeys(dataDir)), inUse, signedMs, lines: {} };
  const { fingerprint, next, previous } = loadSshKeySet(join(dataDir, 'keys', sshFiles[kind]));
  const lines = {
    ...(next && { next: next.publicKey }),
    ...(previous && { previous: previous.publicKey }),
  };
  const ids = { current: fingerprint, next: next?.fingerprint, previous: previous?.fingerprint };
  return { ...ids, inUse, signedMs: 0, lines };
}

async function refuse(
  step: KeyStep,
  kind: KeyKind,
  held: HeldKeys,
  store: Store,
  force: boolean,
): Promise<void> {
  const refusal = refusalOfKeyStep(step, held);
  if (refusal !== undefined) throw new DomainError('invalid_state', refusal);
  if (force) return;
  const byForce = ' (--force does it all the same.)';
  const premature = prematureKeyStep(step, held, Date.now());
  if (premature !== undefined) throw new DomainError('invalid_state', `${premature}${byForce}`);
  const key = step === 'switch' ? held.lines.next : step === 'back' ? held.lines.previous : undefined;
  if (kind !== 'client' || key === undefined) return;
  const { refusalsOfLoginNodes } = await import('../app/login-nodes.ts');
  const refusals = await refusalsOfLoginNodes(store.read, key);
  if (refusals.length === 0) return;
  const most = 20;
  const rest = refusals.length > most ? [`… and ${refusals.length - most} more.`] : [];
  throw new DomainError(
    'invalid_state',
    ['Login nodes would not let the gateway in:', ...refusals.slice(0, most), ...rest].join('\n  ') +
      `\nAdd this line to the gateway's keys there (\`andromeda admin gateway key\` prints all of them):\n  ${key}\nThen repeat this.${byForce}`,
  );
}

function writeEntry(store: Store, step: KeyStep, kind: KeyKind, held: HeldKeys): Promise<number> {
  const { current, next, previous } = held;
  const others = [...(next ? [`next ${next}`] : []), ...(previous ? [`previous ${previous}`] : [])];
  return store.write((tx) =>
    appendAuditEntry(tx, {
      actorUserId: systemUserId,
      operation: `${step}Key`,
      target: kind,
      reason: `On the host itself, as ${ownAccount()}`,
      result: 'done',
      details: `before: ${[`in use ${current}`, ...others].join(', ')}`,
    }),
  );
}

async function take(step: KeyStep, kind: KeyKind, dataDir: string): Promise<void> {
  if (kind === 'issuer') {
    const steps: Record<KeyStep, () => Promise<void>> = {
      announce: () => announceSigningKey(dataDir),
      switch: () => switchSigningKey(dataDir),
      back: () => switchSigningKeyBack(dataDir),
      withdraw: () => dropSigningKey(dataDir, 'next'),
      retire: () => dropSigningKey(dataDir, 'previous'),
    };
    return steps[step]();
  }
  const steps: Record<KeyStep, (file: string) => void> = {
    announce: announceSshKey,
    switch: switchSshKey,
    back: switchSshKeyBack,
    withdraw: withdrawSshKey,
    retire: retireSshKey,
  };
  steps[step](join(dataDir, 'keys', sshFiles[kind]));
}

function describe(kind: KeyKind, { current, next, previous, inUse, lines }: HeldKeys): string {
  const since = (key: KnownKey | undefined, id: string) =>
    key?.id === id ? `since ${key.since}` : 'from the next reload or start on';
  const rows = [`  in use    ${current}   ${since(inUse?.current, current)}`];
  if (next !== undefined) rows.push(`  next      ${next}   announced ${since(inUse?.next, next)}`);
  if (previous !== undefined) rows.push(`  previous  ${previous}   holds until it is retired`);
  for (const line of Object.values(lines)) rows.push(`            ${line}`);
  return `${titles[kind]}\n${rows.join('\n')}\n`;
}

const reload = 'systemctl reload andromeda';

function nextSteps(step: KeyStep, kind: KeyKind): string {
  const then: Record<KeyStep, string> = {
    announce: {
      host: `From then on clients learn it (UpdateHostKeys), and \`andromeda ssh\` knows both. When everybody has logged in once:
  andromeda admin key switch host`,
      client: `Put its line beside the old one where login nodes keep the gateway's key; simulated ones take it by themselves. Then:
  andromeda admin key switch client`,
      issuer: 'From then on it is published beside the other. Then:\n  andromeda admin key switch issuer',
    }[kind],
    switch: `From then on it is used, and the one before still holds. When all is well:\n  andromeda admin key retire ${kind}`,
    back: `From then on the key from before is used again, and the other one is the next.`,
    withdraw: 'From then on nobody is told of it any more.',
    retire:
      kind === 'client'
        ? 'Take its line away from login nodes as well.'
        : 'From then on nobody is told of it any more.',
  };
  return `\nNext:\n  ${reload}\n${then[step]}\n`;
}
