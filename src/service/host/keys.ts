/**
 * `andromeda admin key`: the service's own keys, and how one replaces another. It works on the host, on the files of the data
 * directory, whether or not a service runs; the service takes up what is there when it starts or is reloaded.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadKeys } from '../../api/identity/issuer/keys.ts';
import { makeAuditKey } from '../../domain/audit/key.ts';
import { DomainError } from '../../domain/error.ts';
import {
  type KeyKind,
  type KeyStep,
  type KnownKey,
  prematureKeyStep,
  refusalOfKeyStep,
} from '../../domain/key-rotation.ts';
import { serviceSecrets } from '../../domain/service-secret.ts';
import { loadSshKeySet } from '../../lib/ssh/key-set.ts';
import { writeWhole } from '../../lib/whole-file.ts';
import { listMissingKeys, missingKeyText } from '../../store/data-dir/keys-in-use.ts';
import type { Store } from '../../store/engine/index.ts';
import type { Config } from '../config/index.ts';
import { type HeldKeys, type KeyHolder, keysInFiles, listHeldKeys, sharedKeys } from './held-keys.ts';
import { refusal, runCommand } from './installation.ts';
import { appendHostEntry, openBeside, ownConfig, requireSecretsKey } from './opened.ts';

export interface KeyOptions {
  config?: string;
  /** Take the step even where clients or login nodes may not know the key yet. */
  force?: boolean;
}

const titles: Record<KeyKind, string> = {
  host: 'host     what the SSH gateway shows to people',
  client: 'client   what the SSH gateway shows to login nodes',
  issuer: 'issuer   what the built-in sign-in signs tokens with',
};

/** Prints which keys there are. Resolves to the exit status. */
export function listKeys(options: KeyOptions): Promise<number> {
  return runCommand(async () => {
    const config = ownConfig(options.config);
    const list = async (holder: KeyHolder) =>
      (await listHeldKeys(holder)).map(([kind, held]) => describe(kind, held)).join('\n');
    if (config.database === undefined) return list(keysInFiles(config.dataDir));
    const secrets = requireSecretsKey(config);
    await using opened = await openBeside(config);
    return list(await sharedKeys({ ...config, secrets }, opened.store));
  });
}

/** Takes one step with one key, and writes it to the audit trail. Resolves to the exit status. */
export function stepKey(step: KeyStep, kind: KeyKind, options: KeyOptions): Promise<number> {
  return runCommand(async () => {
    const config = ownConfig(options.config);
    const secrets = config.database === undefined ? undefined : requireSecretsKey(config);
    // Before the database is opened, which would make one.
    if (!secrets && !(await keysInFiles(config.dataDir).read(kind))) throw noSuchKey(config);
    await using opened = await openBeside(config);
    const { store } = opened;
    const holder = secrets ? await sharedKeys({ ...config, secrets }, store) : keysInFiles(config.dataDir);
    const before = await holder.read(kind);
    if (!before) throw noSuchKey(config);
    await refuse(step, kind, before, store, options.force ?? false);
    // First: a change without an audit entry is worse than an entry about a change that was cut off.
    await writeEntry(store, step, kind, before);
    await holder.take(step, kind);
    const after = (await holder.read(kind)) ?? before;
    return `${describe(kind, after)}${nextSteps(step, kind, secrets !== undefined)}`;
  });
}

/** Makes a key anew whose file is gone, and writes it to the audit trail. Resolves to the exit status. */
export function newKey(kind: KeyKind | 'audit', options: KeyOptions & { yes?: boolean }): Promise<number> {
  return runCommand(async () => {
    const config = ownConfig(options.config);
    const { dataDir, database } = config;
    const file = join(dataDir, serviceSecrets[kind].file);
    if (database !== undefined)
      throw refusal(
        'The keys are in the database that the servers share, and none is made anew there: restore the table `secrets`.',
      );
    if (existsSync(file))
      throw refusal(
        `${file} is there.${kind === 'audit' ? '' : ` Another takes its place by \`andromeda admin key announce ${kind}\`, without anybody being shut out.`}`,
      );
    const [missing] = listMissingKeys(dataDir, [kind], { unchanged: false });
    if (!missing) throw noSuchKey(config);
    if (!options.yes) throw new DomainError('invalid_request', missingKeyText(missing));
    await using opened = await openBeside(config);
    await opened.store.write((tx) =>
      appendHostEntry(tx, { operation: 'newKey', target: kind, details: 'the one before was missing' }),
    );
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    if (kind === 'issuer') await loadKeys(dataDir);
    else if (kind === 'audit') writeWhole(file, makeAuditKey());
    else loadSshKeySet(file);
    return `${file} is made. Start the service.\n`;
  });
}

function noSuchKey({ dataDir, database }: Config): DomainError {
  const where = database === undefined ? dataDir : 'the database';
  return new DomainError('not_found', `There is no such key in ${where} yet; the first start makes it.`);
}

async function refuse(
  step: KeyStep,
  kind: KeyKind,
  held: HeldKeys,
  store: Store,
  force: boolean,
): Promise<void> {
  const reason = refusalOfKeyStep(step, held);
  if (reason !== undefined) throw refusal(reason);
  if (force) return;
  const byForce = ' (--force does it all the same.)';
  const premature = prematureKeyStep(step, held, Date.now());
  if (premature !== undefined) throw refusal(`${premature}${byForce}`);
  const key = step === 'switch' ? held.lines.next : step === 'back' ? held.lines.previous : undefined;
  if (kind !== 'client' || key === undefined) return;
  const { refusalsOfLoginNodes } = await import('../compose/gateway.ts');
  const refusals = await refusalsOfLoginNodes(store.read, key);
  if (refusals.length === 0) return;
  const most = 20;
  const rest = refusals.length > most ? [`… and ${refusals.length - most} more.`] : [];
  throw refusal(
    ['Login nodes would not let the gateway in:', ...refusals.slice(0, most), ...rest].join('\n  ') +
      `\nAdd this line to the gateway's keys there (\`andromeda admin gateway key\` prints all of them):\n  ${key}\nThen repeat this.${byForce}`,
  );
}

function writeEntry(store: Store, step: KeyStep, kind: KeyKind, held: HeldKeys): Promise<number> {
  const { current, next, previous } = held;
  const others = [...(next ? [`next ${next}`] : []), ...(previous ? [`previous ${previous}`] : [])];
  const details = `before: ${[`in use ${current}`, ...others].join(', ')}`;
  return store.write((tx) => appendHostEntry(tx, { operation: `${step}Key`, target: kind, details }));
}

function describe(kind: KeyKind, held: HeldKeys): string {
  const { current, next, previous, inUse, lines, file } = held;
  const since = (key: KnownKey | undefined, id: string) =>
    key?.id === id ? `since ${key.since}` : 'from the next reload or start on';
  const rows = [`  in use    ${current}   ${since(inUse?.current, current)}`];
  if (next !== undefined) rows.push(`  next      ${next}   announced ${since(inUse?.next, next)}`);
  if (previous !== undefined) rows.push(`  previous  ${previous}   holds until it is retired`);
  for (const line of Object.values(lines)) rows.push(`            ${line}`);
  if (file !== undefined)
    rows.push(`            of ${file}, which wins over the database on this server alone`);
  return `${titles[kind]}\n${rows.join('\n')}\n`;
}

const reload = 'systemctl reload andromeda';
const reloadEach = `${reload}      (on every server, one after the other)`;
const byItself = 'nothing: every server takes it up by itself, within a second';

/** `isShared`: whether several servers may have the key. */
function nextSteps(step: KeyStep, kind: KeyKind, isShared: boolean): string {
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
  const first = !isShared ? reload : kind === 'issuer' ? byItself : reloadEach;
  return `\nNext:\n  ${first}\n${then[step]}\n`;
}
