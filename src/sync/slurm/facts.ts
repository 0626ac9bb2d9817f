/** Parses the report of a host into the driver's facts: the lines of its script and, in them, Slurm's own on nodes and jobs. */
import type {
  DirectoryNumber,
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

/** Parses a node's line of `key=value` pairs; only the last value may contain spaces. */
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

/** The model of the first GPU in a list such as `gpu:h100:8(S:0-1),shard:64`, and the number of all GPUs. */
function gpusIn(gres: string): { model: string | undefined; count: number | undefined } {
  const found = [...gres.matchAll(/(?:^|,)gpu(?::([A-Za-z0-9_.-]+))?:(\d+)/g)];
  const count = found.reduce((sum, [, , number]) => sum + Number(number), 0);
  return { model: found[0]?.[1], count: found.length === 0 ? undefined : count };
}

/**
 * GPUs that jobs hold, as slurmctld counts them; undefined where it does not say, and where a GPU is shared in parts: that
 * GPU is in use but is not in the count.
 */
function gpusInUseOf(line: string): number | undefined {
  const used = /(?:^| )GresUsed=(\S*)/.exec(line)?.[1];
  if (used === undefined || /(?:^|,)(?:shard|mps)(?::[A-Za-z0-9_.-]+)?:[1-9]/.test(used)) return undefined;
  return gpusIn(used).count;
}

const mostReason = 200;

/** The reason for which the node was drained or taken down, without its author and time. */
function reasonOf(line: string): string | undefined {
  const text = / Reason=(.*)$/.exec(line)?.[1] ?? '';
  const [said = ''] = text.split(/ \[[^\s@\]]+@[^\s\]]+\]| (?:Comment|Extra|ReservationName|InstanceId)=/, 1);
  const reason = said.trim();
  return reason === '' ? undefined : cutText(reason, mostReason);
}

function takesWork(state: string): boolean {
  const [base = '', ...flags] = state.replace(/[*~#!%$@^-]$/, '').split('+');
  // Suffix of the state: the node does not respond, is powered down, or is about to be.
  if (/[*~!%@^]$/.test(state)) return false;
  const isUp = ['IDLE', 'ALLOCATED', 'MIXED', 'COMPLETING'].includes(base);
  return isUp && !flags.some((flag) => /DRAIN|DOWN|FAIL|NOT_RESPONDING|MAINT|REBOOT|POWER|RES/.test(flag));
}

/** Parses a line `number|id|user|start|end|nodes|name`, times in seconds since 1970. `gpus`: GPU counts by `number`. */
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

/** Parses a line `number|id|user|expected start|reason|name`. */
export function pendingJobOf(line: string, gpus: ReadonlyMap<string, number>): PendingJob | undefined {
  const [number = '', id, user, start, reason, ...name] = line.split('|');
  if (!id || !user || reason === undefined) return undefined;
  const known = present({ gpus: gpus.get(number), startsAt: timeIn(start) });
  return { id, user, name: name.join('|'), reason, ...known };
}

/** The time as ISO 8601; undefined for Slurm's `N/A`, `NONE` and `Unknown`. */
function timeIn(seconds: string | undefined): string | undefined {
  return /^\d{1,10}$/.test(seconds ?? '') ? new Date(Number(seconds) * 1_000).toISOString() : undefined;
}

/** Expands a host list such as `a1,n[01-03,7]` into names. */
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

export type ManifestVersion = Pick<Manifest, 'generation' | 'listVersion' | 'desiredGeneration'>;

interface Conflict {
  userId: string;
  username: string;
  message: string;
}

export interface Facts {
  /** The version in force, confirmed by the restarts that it required; undefined where nothing of ours ever was. */
  settled: ManifestVersion | undefined;
  logins: readonly string[];
  /** Digests of the fields of the configuration in force. */
  fields: Readonly<Record<string, string>>;
  owed: readonly string[];
  conflicts: readonly Conflict[];
  /** IDs of people who should be able to log in on the host, and could not when it was observed. */
  absent: readonly string[];
  /** The numbers that the host's directory has for people without one. */
  numbers: readonly (DirectoryNumber & { username: string })[];
  drift: readonly string[];
  /** Faults that the site mends and that keep no one out: groups that cannot be as wanted, open accounts of those who left. */
  faults: readonly string[];
  /** Shells that people chose and the host lacks: their accounts have another one. */
  missingShells: readonly string[];
  /** Facts for an operator that only the site can change. */
  notices: readonly string[];
  jobLogins: readonly string[];
  /** Failures of the script that made this report. */
  problems: readonly { kind: string; message: string }[];
  /** The configuration that was rejected. */
  refused: { desiredGeneration: number; message: string } | undefined;
  /** A Slurm node of the host did not come back from a restart. */
  hasFailed: boolean;
  /** The value of `confirmed` at which the host kept the last good configuration, until its successor is known to be good. */
  keptAfter: number | undefined;
  /** On the controller: number of configurations found good. While `keptAfter` equals it, the kept one may be restored. */
  confirmed: number;
  /** A random value, made when the host first got something from us: identifies the machine under any name. */
  token: string | undefined;
  /** The inode of slurm.conf: equal on hosts that share the file. */
  inode: string | undefined;
  /** On a login node: the file system type of `/home`. */
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
  /** `machines` and the jobs are undefined when Slurm did not answer the query. */
  machines: readonly MachineReport[] | undefined;
  jobs?: readonly RunningJob[];
  pendingJobs?: readonly PendingJob[];
  moreJobs?: { running: number; pending: number };
  jobsArePrivate: boolean | undefined;
  usageIsPrivate: boolean | undefined;
  /** The site's own prolog and epilog, as slurm.conf names them. */
  site: Readonly<Record<string, string>>;
}

/** Lists of login names by digest: a host sends only the digest of a list that is known here. */
export type KnownLogins = Map<string, readonly string[]>;

/** Parses a report. Adds its login names to `known`. */
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
    numbers: rows('number').map(([userId = '', username = '', uid, gid]) => {
      return { userId, username, uid: Number(uid), gid: Number(gid) };
    }),
    drift: column('drift'),
    faults: column('fault'),
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

type ReportRows = ReadonlyMap<string, readonly string[][]>;

/** The facts that Slurm reported; undefined where the host has no controller. */
function controllerIn(report: ReportRows): ControllerFacts | undefined {
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
  report: ReportRows,
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

function versionOf([generation, listVersion, desiredGeneration]: string[]): ManifestVersion {
  return {
    generation: Number(generation),
    listVersion: Number(listVersion),
    desiredGeneration: Number(desiredGeneration),
  };
}
