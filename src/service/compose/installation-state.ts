/** The state of the service itself, for operators: keys in use, backups, and faults on this host. */
import { statfsSync } from 'node:fs';
import type { InstallationView } from '../../api/business/operation.ts';
import type { BackupState, Problem } from '../../domain/installation-state.ts';
import { mapHeld } from '../../domain/key-rotation.ts';
import { formatBytes } from '../../domain/units.ts';
import {
  readBackupFailure,
  readDrill,
  readKeptBackup,
  readLastBackup,
} from '../../store/data-dir/last-backup.ts';
import type { AuditFaults } from '../audit/index.ts';
import { dueAt } from '../backup/index.ts';
import { listCertificates, problemOf } from '../config/certificates.ts';
import type { Config } from '../config/index.ts';
import type { Parts } from './parts.ts';
import { describeKey } from './service-keys.ts';

type InstallationParts = Pick<
  Parts,
  'config' | 'keys' | 'loginNodeKeys' | 'gateway' | 'acme' | 'audit' | 'store' | 'sync' | 'now'
> & {
  /** False once a token of the issuer lacked the time of the sign-in. */
  saysSignInTime(): boolean;
};

export function createInstallationView(parts: InstallationParts): InstallationView {
  const { config, keys, sync, now } = parts;
  return {
    keys: () => keys.kinds.map((kind) => ({ kind, held: mapHeld(keys.of(kind), describeKey) })),
    backup: () => backupState(config, now()),
    problems: () => [
      ...problemsOfListeners(parts),
      // A database that servers share is backed up by dumps, which are not visible here.
      ...(config.database === undefined ? problemsOfBackups(config, now()) : []),
      ...[spaceLeft(config.dataDir).problem ?? []].flat(),
      ...problemsOfAudit(parts.audit.faults(), config.audit.file),
      ...parts.loginNodeKeys.problems(),
      ...(parts.saysSignInTime() ? [] : [noSignInTime]),
      ...parts.store.formerPrimaries().map(problemOfPrimary),
    ],
    passesOf: (clusterId, side) => (sync.loop ?? sync.announced).passesOf(clusterId, side),
  };
}

function backupState({ backup, dataDir }: Config, now: number): BackupState {
  const [kept, failure] = [readKeptBackup(dataDir), readBackupFailure(dataDir)];
  const due = backup && dueAt(backup, { kept, failure }, now);
  return {
    schedule: backup &&
      due && {
        to: backup.to,
        everyMs: backup.everyMs,
        dueAt: new Date(Math.max(now, due.backup)).toISOString(),
        nextAt: new Date(Math.max(now, Math.min(due.backup, due.command))).toISOString(),
      },
    last: readLastBackup(dataDir),
    kept,
    failure,
    drill: readDrill(dataDir),
  };
}

const noSignInTime: Problem = {
  area: 'server',
  about: 'Sign-in',
  urgency: 'now',
  message:
    'The access tokens of the identity provider do not say when people signed in (auth_time), so that access lapses although they did. Only sign-ins at the console count.',
  action: 'Have it put auth_time into access tokens (docs/identity-provider.md), or take out `access`.',
};

function problemOfPrimary(message: string): Problem {
  return {
    area: 'server',
    about: 'PostgreSQL',
    urgency: 'now',
    message: `A primary that is not served from takes writes. ${message}`,
    action: 'Stop it, and make it a standby of the one that took over (docs/scale.md).',
  };
}

const dayMs = 86_400_000;

export function problemsOfBackups(config: Config, now: number): Problem[] {
  const { schedule, last, failure } = backupState(config, now);
  const about = { area: 'backup', about: 'Backups' } as const;
  if (failure)
    return [
      {
        ...about,
        urgency: 'now',
        since: failure.at,
        message: `${failure.file === undefined ? 'No backup could be made' : 'The command after a backup failed'}, ${failure.failures === 1 ? 'once' : `${failure.failures} times`} in a row: ${failure.message}`,
        action: 'Mend what it says; `andromeda backup` tries at once.',
        nextTryAt: schedule?.nextAt,
      },
    ];
  const limitMs = schedule ? 2 * schedule.everyMs : 2 * dayMs;
  if (last && now - Date.parse(last.at) <= limitMs) return [];
  // A new installation that is about to make its first backup has no problem yet.
  if (!last && schedule) return [];
  return [
    {
      ...about,
      urgency: schedule ? 'now' : 'soon',
      since: last?.at,
      message: last ? `The last one is of ${last.at}, older than it should be.` : 'None is known.',
      action: schedule
        ? 'See whether the service has been running: `andromeda doctor`.'
        : 'Set `backup` in the configuration for one each day, or run `andromeda backup FILE`.',
    },
  ];
}

function problemsOfListeners({ config, gateway, acme, now }: InstallationParts): Problem[] {
  const problems: Problem[] = [];
  const add = (subject: Pick<Problem, 'area' | 'about' | 'since'>, message: string, action: string) =>
    problems.push({ ...subject, urgency: 'now', message, action });
  if (gateway.fault !== undefined)
    add(
      { area: 'gateway', about: 'SSH gateway' },
      `It does not serve: ${gateway.fault}.`,
      'Read the log, and `andromeda check`; it is tried again by itself.',
    );
  for (const { pid, since, sessions } of gateway.unreached)
    add(
      { area: 'gateway', about: `Gateway process ${pid}`, since: new Date(since).toISOString() },
      `It does not answer, or has not confirmed a revocation or another change. It has ${sessions} open sessions.`,
      `It is tried again by itself, and the process ends sessions that it cannot confirm. One that stands still ends with: kill -9 ${pid}`,
    );
  if (acme?.obstacle !== undefined)
    add(
      { area: 'certificate', about: 'ACME' },
      acme.obstacle,
      'See that the address for challenges can be reached from outside.',
    );
  for (const one of listCertificates(config)) {
    const problem = problemOf(one, now());
    if (problem) problems.push({ area: 'certificate', about: one.setting, ...problem });
  }
  return problems;
}

function problemsOfAudit({ signing, copy }: AuditFaults, file: string | undefined): Problem[] {
  const problems: Problem[] = [];
  const add = (fault: { since: number }, rest: Pick<Problem, 'about' | 'message' | 'action'>) =>
    problems.push({ area: 'audit', urgency: 'now', since: new Date(fault.since).toISOString(), ...rest });
  if (copy)
    add(copy, {
      about: `copy to ${file}`,
      message: `It does not get what it should: ${copy.message}`,
      action:
        'See that the service may write there, and that its disk has room. What waits is then written by itself.',
    });
  if (signing)
    add(signing, {
      about: 'signed heads',
      message: `No head is signed: ${signing.message}`,
      action: 'Ask the trail itself: `andromeda admin audit verify`.',
    });
  return problems;
}

const mebibyte = 2 ** 20;

/** The free space on the disk of a directory, as a sentence, and a problem if that is too little. */
export function spaceLeft(dataDir: string): { text: string; problem: Problem | undefined } {
  const { bavail, bsize, blocks } = statfsSync(dataDir);
  const free = bavail * bsize;
  const text = `${formatBytes(free)} are free on the disk of ${dataDir}.`;
  const isScarce = free < 1024 * mebibyte && bavail < blocks / 10;
  const urgency = free < 64 * mebibyte ? 'now' : isScarce ? 'soon' : undefined;
  const message = `${text} Without space nothing can be written, and nobody revoked.`;
  return {
    text,
    problem: urgency && { area: 'disk', about: dataDir, urgency, message, action: 'Make room there.' },
  };
}
