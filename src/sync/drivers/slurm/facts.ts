/** What a host reported of itself last, in terms of the driver. */
import type { MachineReport, RunningJob } from '../../../domain/manifest.ts';
import { jobOf, machineOf } from './nodes.ts';
import { readReport } from './script.ts';

/** What is in force on a host. */
export interface Version {
  generation: number;
  listVersion: number;
  desiredGeneration: number;
}

export interface Conflict {
  userId: string;
  username: string;
  message: string;
}

export interface Facts {
  /** In force and confirmed by the restarts that it asked for; undefined where nothing of ours ever was. */
  settled: Version | undefined;
  /** Who has a login account there. */
  logins: readonly string[];
  /** Digests of the fields of the configuration in force. */
  fields: Readonly<Record<string, string>>;
  owed: readonly string[];
  conflicts: readonly Conflict[];
  /** By user ID: who should be able to log in there, and could not when it was observed. */
  absent: readonly string[];
  drift: readonly string[];
  /** What went wrong in the script that reported all this. */
  problems: readonly { kind: string; message: string }[];
  /** A configuration that was not taken. */
  refused: { desiredGeneration: number; message: string } | undefined;
  changed: boolean;
  /** Random, made when the host first got something from us: it identifies the machine under any name. */
  token: string | undefined;
  /** Of slurm.conf: the same where hosts share it. */
  inode: string | undefined;
  /** The file system of `/home`, where it is a login node. */
  home: string | undefined;
  ibSpeed: string | undefined;
  controller: ControllerFacts | undefined;
}

export interface ControllerFacts {
  up: boolean;
  /** Why it is not. */
  message: string;
  /** undefined: there is none. */
  accounting: { up: boolean; message: string } | undefined;
  machines: readonly MachineReport[];
  jobs: readonly RunningJob[];
  /** The site's own prolog and epilog, as slurm.conf names them. */
  site: Readonly<Record<string, string>>;
}

/** Login names by the digest that hosts send in place of names that are known here. */
export type KnownLogins = Map<string, readonly string[]>;

/** The facts in a report. `known` is added to. */
export function readFacts(text: string, known: KnownLogins): Facts {
  const report = readReport(text);
  const rows = (kind: string) => report.get(kind) ?? [];
  const column = (kind: string) => rows(kind).map(([first = '']) => first);
  const [digest] = column('logins');
  const logins = known.get(digest ?? '') ?? column('login');
  if (digest !== undefined) known.set(digest, logins);
  const [refused] = rows('refused');
  const [settled] = rows('settled');
  const [controller] = rows('controller');
  const [accounting] = rows('accounting');
  return {
    settled: settled && versionOf(settled),
    logins,
    fields: Object.fromEntries(rows('field').map(([name = '', value = '']) => [name, value])),
    owed: column('owed'),
    conflicts: rows('conflict').map(([userId = '', username = '', , message = '']) => ({
      userId,
      username,
      message,
    })),
    absent: column('absent').filter((userId) => userId !== '-'),
    drift: column('drift'),
    problems: rows('problem').map(([kind = '', message = '']) => ({ kind, message })),
    refused: refused && { desiredGeneration: Number(refused[0]), message: refused[1] ?? '' },
    changed: rows('changed').length > 0,
    token: column('token')[0],
    inode: column('inode')[0],
    home: column('home')[0],
    ibSpeed: column('infiniband')[0],
    controller: controller && {
      up: controller[0] === 'up',
      message: controller[1] ?? '',
      accounting: accounting && { up: accounting[0] === 'up', message: accounting[1] ?? '' },
      machines: column('node').flatMap((line) => machineOf(line) ?? []),
      jobs: column('job').flatMap((line) => jobOf(line) ?? []),
      site: Object.fromEntries(rows('site').map(([kind = '', value = '']) => [kind, value])),
    },
  };
}

function versionOf([generation, listVersion, desiredGeneration]: string[]): Version {
  return {
    generation: Number(generation),
    listVersion: Number(listVersion),
    desiredGeneration: Number(desiredGeneration),
  };
}
