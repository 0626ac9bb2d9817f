/** What a run consists of. */
import { globSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { checks } from '../check.ts';

export interface Job {
  /** The file, or the folder whose files it runs together; with `postgres: ` before it, on PostgreSQL. */
  name: string;
  /** Test files from the repository's root, one after the other in one process; none: it is a check. */
  files: string[];
  isOnPostgres?: boolean;
}

/** What a job took when it was measured, in seconds: of the processors, and until it ended. */
export type Costs = Record<string, { cpu: number; seconds: number }>;

const costsFile = join(import.meta.dirname, 'costs.json');

/** Folders whose files test in the process that they are in, without the program. */
const inProcess = [
  'app',
  'audit',
  'backup',
  'business',
  'config',
  'console',
  'domain',
  'http',
  'identity',
  'kubernetes',
  'lib',
  'platform',
  'ssh',
  'store',
];

/**
 * Folders whose files run one after the other in one process: most of what a short file takes goes into loading what all of them
 * load. One in another comes before it.
 */
const inOne = [
  ...['console/people', 'gateway/clients', 'gateway/process', 'store/postgres', ...inProcess],
  ...['acme', 'cli', 'docs', 'e2e', 'gateway', 'host', 'packages', 'servers', 'sync'],
];

/** Files of those folders that would hold up the others: they wait for long, or block the process. */
const apart = [
  'test/app/{clock,other-servers,servers}.test.ts',
  'test/host/{migrate,secrets,systemd,upgrade}.test.ts',
  'test/host/*.full.test.ts',
  'test/http/half-sent.test.ts',
  'test/kubernetes/{bad-days,service}.test.ts',
  'test/store/{backup,campaign,campaign.full}.test.ts',
  'test/store/postgres/*.full.test.ts',
];

/** Rules, unit tables and one walk through the demonstration: `npm run test:quick`, under a minute. */
const quick = [
  'test/*.test.ts',
  'test/domain/*.test.ts',
  'test/store/open.test.ts',
  'test/http/judge.test.ts',
  'test/cli/help.test.ts',
  'test/e2e/walk.test.ts',
];

/** Files that run a second time with their stores on PostgreSQL: the store's. */
const onBoth = ['test/store/{invariants,open-sessions,reads,writes}.test.ts'];

/**
 * In a full run too: those of the APIs above the store that ask the most different queries. What is about SQLite's file (backups,
 * its disk) is not among them.
 */
const onBothInFull = [
  ...onBoth,
  'test/store/{access-decision,access-lists}.property.test.ts',
  'test/business/{idempotency,machines,me,memberships,permissions,purchases}.test.ts',
  'test/business/{reservations,resource-grants,ssh-keys}.test.ts',
  'test/host/accept-break.test.ts',
  'test/business/operator/{audit,lab,people,problems}.test.ts',
  'test/platform/{clusters,generations,machines,slurm-sessions,ssh-access,storage,usage}.test.ts',
  'test/identity/{authentication,binding}.test.ts',
  'test/identity/issuer/{refresh,tokens}.test.ts',
];

export interface Choice {
  quick?: boolean;
  /** With what takes long and is for before a release: files named `*.full.test.ts`, and all of what is to run on PostgreSQL. */
  full?: boolean;
  /** A folder. */
  under?: string | undefined;
  files?: string[];
}

/** Those that a run is to do, the longest first. */
export function jobsOf(root: string, choice: Choice): Job[] {
  const find = (patterns: string | string[]) => {
    const one = (pattern: string) => {
      const found = globSync(pattern, { cwd: root });
      if (found.length === 0) throw new Error(`there is no ${pattern} any more: mend scripts/test/jobs.ts`);
      return found;
    };
    return [patterns].flat().flatMap(one).sort();
  };
  if (choice.files && choice.files.length > 0)
    return choice.files.map((file) => ({ name: file, files: [file] }));
  const checking = checks.map((name) => ({ name: `check: ${name}`, files: [] }));
  const all = find('test/**/*.test.ts').filter((file) => choice.full || !file.endsWith('.full.test.ts'));
  if (choice.quick) return longestFirst([...checking, ...together(find(quick))]);
  if (choice.under) return longestFirst(together(all.filter((file) => file.startsWith(`${choice.under}/`))));
  const both = find(choice.full ? onBothInFull : onBoth);
  const second = together(both).map((job) => ({ ...job, name: `postgres: ${job.name}`, isOnPostgres: true }));
  return longestFirst([...checking, ...together(all), ...second]);
}

/** Files of folders that are in one process as one job, any other as its own. */
function together(files: string[]): Job[] {
  const folderOf = (file: string) => {
    const folder = inOne.find((one) => file.startsWith(`test/${one}/`));
    return folder === undefined || apart.some((one) => matchesGlob(file, one)) ? file : `test/${folder}`;
  };
  return [...Map.groupBy(files, folderOf)].map(([name, own]) => ({ name, files: own }));
}

function longestFirst(jobs: Job[]): Job[] {
  const costs = readCosts();
  const length = ({ name }: Job) => costs[name]?.seconds ?? 0;
  return jobs.sort((a, b) => length(b) - length(a));
}

export function readCosts(): Costs {
  return JSON.parse(readFileSync(costsFile, 'utf8'));
}

export { costsFile };

/** Whether tests of a job may start the program, so that it is built before. */
export function startsProgram({ files: [file] }: Job): boolean {
  return file !== undefined && !inProcess.some((folder) => file.startsWith(`test/${folder}/`));
}

/** Whether a job waits for the most part (for daemons, for deadlines) and leaves the processors to others, as measured. */
export function isWaiting({ name }: Job, costs: Costs): boolean {
  const { cpu = 1, seconds = 1 } = costs[name] ?? {};
  return cpu < 0.4 * seconds;
}
