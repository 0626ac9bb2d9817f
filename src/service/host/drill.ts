/** `andromeda restore --drill`: tries to restore the newest backup in a temporary directory. */
import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { formatBytes } from '../../domain/units.ts';
import { requireFree } from '../../store/data-dir/before-upgrade.ts';
import { listNamedFiles } from '../../store/data-dir/inspect.ts';
import { noteDrill } from '../../store/data-dir/last-backup.ts';
import { openStore } from '../../store/data-dir/open-store.ts';
import { restoreBackup } from '../../store/data-dir/restore.ts';
import type { BackupSettings } from '../config/backup.ts';
import { auditKeysOf, judgeSeal } from './checks/backup-findings.ts';
import { examine } from './checks/doctor.ts';
import { type Finding, ok, orWrong, printFindings, warn } from './checks/findings.ts';
import { checkKeys } from './files.ts';

export interface DrillOptions {
  find(): Promise<string>;
  dataDir: string;
  settings: BackupSettings | undefined;
  signal: AbortSignal;
}

const prefix = 'andromeda-drill-';

/** Prints its findings. Resolves to the exit status: 0 where the backup is as good as its installation. */
export function drill(options: DrillOptions): Promise<number> {
  return printFindings(noted(options), false);
}

/** The findings of a drill; also notes its outcome, which the service shows. */
async function* noted(options: DrillOptions): AsyncGenerator<Finding> {
  const outcome: DrillOutcome = { file: undefined };
  let isGood = true;
  for await (const finding of findings(options, outcome)) {
    isGood &&= finding.verdict !== 'wrong';
    yield finding;
  }
  const { file } = outcome;
  // Without a file, the drill proved nothing about a backup.
  if (file !== undefined) noteDrill(options.dataDir, { at: new Date().toISOString(), file, isGood });
}

interface DrillOutcome {
  file: string | undefined;
}

async function* findings(options: DrillOptions, outcome: DrillOutcome): AsyncGenerator<Finding> {
  removeAbandoned();
  const scratch = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-`));
  try {
    yield* orWrong('backup', rehearse(options, scratch, outcome));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  yield ok('scratch', `${scratch} is removed again.`);
}

async function* rehearse(
  { find, dataDir, settings, signal }: DrillOptions,
  scratch: string,
  outcome: DrillOutcome,
): AsyncGenerator<Finding> {
  const started = performance.now();
  const file = await find();
  const bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  requireFree(scratch, 2 * bytes);
  const restored = join(scratch, 'data');
  const { madeAt, version, elsewhere, seal } = restoreBackup(file, restored, new Date().toISOString());
  outcome.file = file;
  const seconds = Math.ceil((performance.now() - started) / 1000);
  const text = `${file}, ${formatBytes(bytes)}, is of ${madeAt}, by Andromeda ${version}. It was back in ${seconds} s.`;
  const ageMs = Date.now() - Date.parse(madeAt);
  if (settings && dirname(file) === settings.to && ageMs > 2 * settings.everyMs)
    yield warn('backup', `${text} That is older than it should be.`);
  else yield ok('backup', text);
  yield judgeSeal('it', seal, auditKeysOf(dataDir));
  yield* checkKeys(restored, { unchanged: false });
  const database = join(restored, 'andromeda.db');
  // Like a start: an older version's database is brought to this one's schema.
  await (await openStore(restored)).close();
  yield* examine(database);
  const clusters = new Set(listNamedFiles(database, { unchanged: false })?.map(({ cluster }) => cluster))
    .size;
  yield ok(
    'files',
    `${elsewhere.length} files that belong elsewhere are in it and are not here as they were; ${clusters} clusters name files.`,
  );
  signal.throwIfAborted();
}

/** Removes the leftovers of killed drills, which are large, and secret. */
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir()).filter((one) => one.startsWith(prefix))) {
    const pid = Number(name.slice(prefix.length).split('-')[0]);
    const path = join(tmpdir(), name);
    // In a directory that every account can write to, a name proves nothing.
    const isOurs = lstatSync(path, { throwIfNoEntry: false })?.uid === process.getuid?.();
    if (isOurs && !existsSync(`/proc/${pid}`)) rmSync(path, { recursive: true, force: true });
  }
}
