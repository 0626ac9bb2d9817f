/** What a host reported of itself last, in terms of the driver: its script's lines and, in them, Slurm's own on nodes and jobs. */
import type {
  GpuDay,
  MachineReport,
  Manifest,
  PendingJob,
  RunningJob,
  SlurmLimit,
} from '../../domain/access/manifest.ts';
import { present } from '../../domain/present.ts';
import { cutText } from '../../domain/text.ts';
import { readReport } from './script.ts';

/** A line of `key=value` pairs; a value can have spaces only where it is the last. */
export function machineOf(line: string): MachineReport | undefined {
  const field = (key: string) => new RegExp(`(?:^| )${key}=(\\S*)`).exec(line)?.[1];
  const name = field('NodeName');
  if (!name) return undefined;
  const state = field('State') ?? 'UNKNOWN';
  const gpus = gpusIn(field('Gres') ?? '');
  const ready = takesWork(state);
  const gpusInUse = gpus.count === undefined ? undefined : gpusInUseOf(line);
  const reason = ready ? undefined : reasonOf(line);
  const cpus = Number(field('CPUTot'));
  const megabytes = Number(field('RealMemory'));
  return {
    name,
    ready,
    phase: state.toLowerCase(),
    ...present({ gpuModel: gpus.model, gpuCount: gpus.count, gpusInUse, reason }),
    ...(cpus > 0 ? { cpuCores: cpus } : {}),
    ...(megabytes > 0 ? { memoryGib: Math.floor(megabytes / 1024) } : {}),
  };
}

/** The GPUs in a list such as `gpu:h100:8(S:0-1),shard:64`: of the first model, and how many of all. */
function gpusIn(gres: string): { model: string | undefined; count: number | undefined } {
  const found = [...gres.matchAll(/(?:^|,)gpu(?::([A-Za-z0-9_.-]+))?:(\d+)/g)];
  const count = found.reduce((sum, [, , number]) => sum + Number(number), 0);
  return { model: found[0]?.[1], count: found.length === 0 ? undefined : count };
}

/**
 * How many GPUs jobs hold, as slurmctld counts them; undefined where it does not say. A GPU that is given away in parts
 * is in use, and is not counted as one: then it is not known either.
 */
function gpusInUseOf(line: string): number | undefined {
  const used = /(?:^| )GresUsed=(\S*)/.exec(line)?.[1];
  if (used === undefined || /(?:^|,)(?:shard|mps)(?::[A-Za-z0-9_.-]+)?:[1-9]/.test(used)) return undefined;
  return gpusIn(used).count;
}

const mostReason = 200;

/** What was said when the node was taken out of work, without who said it and when. */
function reasonOf(line: string): string | undefined {
  const text = / Reason=(.*)$/.exec(line)?.[1] ?? '';
  const [said = ''] = text.split(/ \[[^\s@\]]+@[^\s\]]+\]| (?:Comment|Extra|ReservationName|InstanceId)=/, 1);
  const reason = said.trim();
  return reason === '' ? undefined : cutText(reason, mostReason);
}

function takesWork(state: string): boolean {
  const [base = '', ...flags] = state.replace(/[*~#!%$@^-]$/, '').split('+');
  // A mark at the end of the state: it does not respond, is powered down, or is on its way there.
  if (/[*~!%@^]$/.test(state)) return false;
  const isUp = ['IDLE', 'ALLOCATED', 'MIXED', 'COMPLETING'].includes(base);
  return isUp && !flags.some((flag) => /DRAIN|DOWN|FAIL|NOT_RESPONDING|MAINT|REBOOT|POWER|RES/.test(flag));
}

/** A line `number|id|user|start|end|nodes|name`, with the times in seconds since 1970; `gpus` by number. */
export function jobOf(line: string, gpus: ReadonlyMap<string, number>): RunningJob | undefined {
  const [number = '', id, user, start, end, nodes, ...name] = line.split('|');
  if (!id || !user || nodes === undefined) return undefined;
  return {
    id,
    user,
    name: name.join('|'),
    machines: expandHosts(nodes),
    ...present({ gpus: gpus.get(number), startedAt: timeIn(start), endsAt: timeIn(end) }),
  };
}

/** A line `number|id|user|expected start|reason|name`. */
export function pendingJobOf(line: string, gpus: ReadonlyMap<string, number>): PendingJob | undefined {
  const [number = '', id, user, start, reason, ...name] = line.split('|');
  if (!id || !user || reason === undefined) return undefined;
  const known = present({ gpus: gpus.get(number), startsAt: timeIn(start) });
  return { id, user, name: name.join('|'), reason, ...known };
}

/** `N/A`, `NONE` and `Unknown` are no times. */
function timeIn(seconds: string | undefined): string | undefined {
  return /^\d{1,10}$/.test(seconds ?? '') ? new Date(Number(seconds) * 1_000).toISOString() : undefined;
}

/** The names in a host list such as `a1,n[01-03,7]`. */
export function expandHosts(list: string): string[] {
  const parts = list.match(/[^,[]+(?:\[[^\]]*\][^,[]*)*/g) ?? [];
  return parts.flatMap((part) => expandPart(part));
}

const maxNodes = 100_000;

function expandPart(part: string): string[] {
  const [, head = '', ranges, tail = ''] = /^([^[]*)\[([^\]]*)\](.*)$/.exec(part) ?? [];
  if (ranges === undefined) return part === '' ? [] : [part];
  const numbers = ranges.split(',').flatMap((range) => {
    const [from = '', to = from] = range.split('-');
    const count = Math.max(0, Math.min(maxNodes, Number(to) - Number(from) + 1));
    return Array.from({ length: count }, (_, index) => `${Number(from) + index}`.padStart(from.length, '0'));
  });
  return numbers.flatMap((number) =>
    expandPart(tail)
      .map((rest) => head + number + rest)
      .concat(tail ? [] : head + number),
  );
}

export type Version = Pick<Manifest, 'generation' | 'listVersion' | 'desiredGeneration'>;

interface Conflict {
  userId: string;
  username: string;
  message: string;
}

export interface Facts {
  /** In force and confirmed by the restarts that it asked for; undefined where nothing of ours ever was. */
  settled: Version | undefined;
  logins: readonly string[];
  /** Digests of the fields of the configuration in force. */
  fields: Readonly<Record<string, string>>;
  owed: readonly string[];
  conflicts: readonly Conflict[];
  /** By user ID: who should be able to log in there, and could not when it was observed. */
  absent: readonly string[];
  drift: readonly string[];
  /** Shells that people have chosen, in place of which their accounts there have another. */
  missingShells: readonly string[];
  /** What an operator should know of and is the site's to change. */
  notices: readonly string[];
  jobLogins: readonly string[];
  /** What went wrong in the script that reported all this. */
  problems: readonly { kind: string; message: string }[];
  /** A configuration that was not taken. */
  refused: { desiredGeneration: number; message: string } | undefined;
  /** Of one of its Slurm nodes: it did not come back from a restart. */
  hasFailed: boolean;
  /** After how many good configurations it keeps the last good one, until the one in its place is known to be good. */
  keptAfter: number | undefined;
  /** On the controller: how many configurations were found good. One that was kept after as many may come back. */
  confirmed: number;
  /** Random, made when the host first got something from us: it identifies the machine under any name. */
  token: string | undefined;
  /** Of slurm.conf: the same where hosts share it. */
  inode: string | undefined;
  /** The file system of `/home`, where it is a login node. */
  home: string | undefined;
  ibSpeed: string | undefined;
  controller: ControllerFacts | undefined;
}

interface ControllerFacts {
  up: boolean;
  message: string;
  accounting:
    | { up: boolean; message: string; gpuDays?: readonly GpuDay[]; limits?: readonly SlurmLimit[] }
    | undefined;
  /** These and the jobs are undefined where Slurm did not say which there are. */
  machines: readonly MachineReport[] | undefined;
  jobs?: readonly RunningJob[];
  pendingJobs?: readonly PendingJob[];
  moreJobs?: { running: number; pending: number };
  jobsArePrivate: boolean | undefined;
  usageIsPrivate: boolean | undefined;
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
    missingShells: column('missing-shell'),
    notices: column('notice'),
    jobLogins: column('job-login'),
    problems: rows('problem').map(([kind = '', message = '']) => ({ kind, message })),
    refused: refused && { desiredGeneration: Number(refused[0]), message: refused[1] ?? '' },
    hasFailed: rows('failed').length > 0,
    keptAfter: rows('trial').map(([after]) => Number(after))[0],
    confirmed: Number(column('confirmed')[0] ?? 0),
    token: column('token')[0],
    inode: column('inode')[0],
    home: column('home')[0],
    ibSpeed: column('infiniband')[0],
    controller: controllerIn(report),
  };
}

type Lines = ReadonlyMap<string, readonly string[][]>;

/** What Slurm itself said; undefined where the host has no controller. */
function controllerIn(report: Lines): ControllerFacts | undefined {
  const rows = (kind: string) => report.get(kind) ?? [];
  const column = (kind: string) => rows(kind).map(([first = '']) => first);
  const [controller] = rows('controller');
  if (!controller) return undefined;
  const [accounting] = rows('accounting');
  const gpus = new Map(rows('gpus').map(([number = '', count]) => [number, Number(count)] as const));
  const privateData = column('private')[0];
  const isPrivate = (what: RegExp) => (privateData === undefined ? undefined : what.test(privateData));
  return {
    up: controller[0] === 'up',
    message: controller[1] ?? '',
    accounting: accounting && {
      ...{ up: accounting[0] === 'up', message: accounting[1] ?? '' },
      gpuDays: gpuDaysIn(rows('gpu-day'), rows('gpu-seconds')),
      limits: rows('limit').map(([entity = '', name = '', value = '', wanted]) => {
        return { ...present({ user: entity === '.' ? undefined : entity, wanted }), name, value };
      }),
    },
    machines: report.has('nodes') ? column('node').flatMap((line) => machineOf(line) ?? []) : undefined,
    ...jobsIn(report, gpus),
    jobsArePrivate: isPrivate(/\b(jobs|all)\b/i),
    usageIsPrivate: isPrivate(/\b(usage|all)\b/i),
    site: Object.fromEntries(rows('site').map(([kind = '', value = '']) => [kind, value])),
  };
}

function gpuDaysIn(days: readonly string[][], seconds: readonly string[][]): GpuDay[] {
  return days.map(([day = '']) => {
    const own = seconds.filter(([of]) => of === day);
    return { day, seconds: Object.fromEntries(own.map(([, user = '', count]) => [user, Number(count)])) };
  });
}

function jobsIn(
  report: Lines,
  gpus: ReadonlyMap<string, number>,
): Pick<ControllerFacts, 'jobs' | 'pendingJobs' | 'moreJobs'> {
  const lines = (kind: string) => (report.get(kind) ?? []).map(([first = '']) => first);
  if (!report.has('queue')) return {};
  const [jobs, pending] = [lines('queue-job'), lines('pending-job')];
  const unnamed = (kind: string, named: number) => Math.max(0, Number(lines(kind)[0] ?? named) - named);
  return {
    jobs: jobs.flatMap((line) => jobOf(line, gpus) ?? []),
    pendingJobs: pending.flatMap((line) => pendingJobOf(line, gpus) ?? []),
    moreJobs: { running: unnamed('queue', jobs.length), pending: unnamed('pending', pending.length) },
  };
}

function versionOf([generation, listVersion, desiredGeneration]: string[]): Version {
  return {
    generation: Number(generation),
    listVersion: Number(listVersion),
    desiredGeneration: Number(desiredGeneration),
  };
}
