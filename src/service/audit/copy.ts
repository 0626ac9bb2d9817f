/**
 * Copies the audit trail and its signed heads to a file, one line of JSON each: every line once and in order, from a
 * stored position. It reads from the database batch by batch, so that no write waits for the file.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SignedHead } from '../../domain/audit/audit.ts';
import { messageOf } from '../../lib/error-message.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import {
  type AuditListing,
  type AuditPosition,
  findLastSeq,
  findPosition,
  listAuditEntries,
  listHeads,
  setPosition,
} from '../../store/audit/audit.ts';
import type { Reader, Store } from '../../store/engine/index.ts';

export interface AuditFault {
  since: number;
  message: string;
}

const everyMs = 1_000;
const stopMs = 500;

export function startCopy(store: Store, options: FileOptions, { log, now }: { log: Logger; now(): number }) {
  const { path } = options;
  const file = openLines(options);
  let position: AuditPosition | undefined;
  let fault: AuditFault | undefined;
  let isWorking = false;
  const rounds = startRounds(copy, { everyMs, onFault: failed });

  async function copy(stopping: AbortSignal): Promise<void> {
    position ??= await firstPosition(store, path, file);
    while (!stopping.aborted) {
      const batch = await nextBatch(store.read, position);
      if (!batch) break;
      // Entries of sessions are written without an fsync. This write flushes them: no entry is copied that a power cut can take back.
      await store.write(async () => {});
      await file.append(batch.lines);
      position = batch.end;
      await setPosition(store, path, batch.end);
    }
    if (!isWorking) log.info('audit.file.working', { file: path });
    isWorking = true;
    if (fault) announce(store);
    fault = undefined;
  }

  function failed(error: unknown): void {
    const message = messageOf(error);
    // Logged once, not at each attempt.
    if (!fault) log.error('audit.file.failed', { file: path, error: message });
    if (!fault) announce(store);
    fault = { since: fault?.since ?? now(), message };
    isWorking = false;
    position = undefined;
  }

  return {
    get fault() {
      return fault;
    },
    /** Ends within half a second; with `last`, first copies the remaining entries. */
    async stop(last: boolean): Promise<void> {
      const finish = async () => {
        await rounds.stop();
        if (last) await copy(AbortSignal.timeout(stopMs)).catch(failed);
      };
      await Promise.race([finish(), sleep(stopMs, undefined, { ref: false })]);
      file.close();
    },
  };
}

/** Updates pages that show faults. If this write fails, they show the fault of the database. */
function announce(store: Store): void {
  store.write(async ({ changed }) => changed({ kind: 'service' })).catch(() => {});
}

/** The stored position, or that after the file's last lines: after a crash the file is ahead of the stored position. */
async function firstPosition(
  { read }: Store,
  path: string,
  file: ReturnType<typeof openLines>,
): Promise<AuditPosition> {
  const { entry, head } = await findPosition(read, path);
  const position = { entry: Math.min(entry, await findLastSeq(read)), head };
  for (const { kind, seq, hash } of await file.last()) {
    const page = { after: seq - 1, limit: 1 };
    const [known] = await (kind === 'entry' ? listAuditEntries(read, {}, page) : listHeads(read, page));
    // After a restore, another entry may have that number.
    if (known?.seq === seq && known.hash === hash) position[kind] = Math.max(position[kind], seq);
  }
  return position;
}

interface Batch {
  /** At least one line, in ASCII. */
  lines: readonly string[];
  /** The position once all lines are written. */
  end: AuditPosition;
}

const mostLines = 250;
/** A batch ends with the line that exceeds this; one line is some kilobytes. */
const mostBytes = 128 * 1024;

/** The entries and heads after a position; undefined when there are none. */
async function nextBatch(db: Reader, position: AuditPosition): Promise<Batch | undefined> {
  const entries = await listAuditEntries(db, {}, { after: position.entry, limit: mostLines });
  const last = entries.at(-1)?.seq ?? position.entry;
  // A head follows the entries that it covers.
  const heads = await listHeads(db, { after: position.head, limit: mostLines });
  const covered = heads.filter(({ seq }) => seq <= last);
  const lines: string[] = [];
  const end = { ...position };
  let bytes = 0;
  const add = (kind: 'entry' | 'head', fields: AuditListing | SignedHead) => {
    if (lines.length === mostLines || bytes > mostBytes) return;
    const line = lineOf(kind, fields);
    lines.push(line);
    bytes += line.length;
    end[kind] = fields.seq;
  };
  for (const entry of entries) add('entry', entry);
  for (const head of covered) add('head', head);
  return lines.length === 0 ? undefined : { lines, end };
}

/** JSON with escaped strings, so that neither a terminal nor a log collector misreads them. */
function lineOf(kind: 'entry' | 'head', fields: AuditListing | SignedHead): string {
  const known = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
  const json = JSON.stringify({ kind, ...known });
  return json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

interface FileOptions {
  path: string;
  /** The ID of the group that may read the file; undefined: none. */
  group: number | undefined;
}

interface LastLine {
  kind: 'entry' | 'head';
  seq: number;
  hash: string;
}

/** Longer than the longest entry and a page of heads. */
const tailBytes = 128 * 1024;
/** O_NONBLOCK: do not block on a pipe without a reader. */
const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

/** Opens the file for appending; recreates it after it was moved away. */
function openLines({ path, group }: FileOptions) {
  let handle: FileHandle | undefined;

  async function current(): Promise<FileHandle> {
    if (handle && (await isStillThere(handle, path))) return handle;
    await shut();
    handle = await open(path, flags, 0o600);
    await settle(handle, { path, group });
    return handle;
  }

  async function shut(): Promise<void> {
    const old = handle;
    handle = undefined;
    await old?.close().catch(() => {});
  }

  async function using<T>(body: (file: FileHandle) => Promise<T>): Promise<T> {
    try {
      return await body(await current());
    } catch (error) {
      await shut();
      throw error;
    }
  }

  return {
    /** The last entry and the last head in the file. */
    last: () =>
      using(async (file) => {
        const lines = (await readEnd(file, tailBytes)).split('\n').slice(0, -1);
        const messages = lines.map(parse).filter((message) => message !== undefined);
        const last = (kind: string) => messages.findLast((message) => message.kind === kind) ?? [];
        return [last('entry'), last('head')].flat();
      }),
    /** Resolves once the lines are on disk; rejects where it is unknown how many are. */
    append: (lines: readonly string[]) =>
      using(async (file) => {
        // A full disk or a crash can have cut the last line, so new lines start on a line of their own.
        const start = ['', '\n'].includes(await readEnd(file, 1)) ? '' : '\n';
        await file.appendFile(`${start}${lines.map((line) => `${line}\n`).join('')}`);
        await file.datasync();
      }),
    close: () => void shut(),
  };
}

/** Sets owner group and mode, whatever the umask and the creator. Throws where that is not possible. */
async function settle(file: FileHandle, { path, group }: FileOptions): Promise<void> {
  const stats = await file.stat();
  if (!stats.isFile()) throw new Error(`${path} is not a regular file`);
  const wanted = group === undefined ? 0o600 : 0o640;
  try {
    // The group first: the former group must not get to read the file.
    if (group !== undefined && stats.gid !== group) await file.chown(stats.uid, group);
    if ((stats.mode & 0o777) !== wanted) await file.chmod(wanted);
  } catch (error) {
    const member = group === undefined ? '' : ', which must be in the group of audit.group';
    const message = `the mode and group of ${path} cannot be set: it must belong to the service's account${member}`;
    throw new Error(message, { cause: error });
  }
}

async function isStillThere(handle: FileHandle, path: string): Promise<boolean> {
  const [mine, there] = await Promise.all([handle.stat(), stat(path).catch(() => undefined)]);
  return there?.ino === mine.ino && there.dev === mine.dev;
}

async function readEnd(file: FileHandle, most: number): Promise<string> {
  const { size } = await file.stat();
  const length = Math.min(size, most);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.toString('latin1', 0, bytesRead);
}

function parse(line: string): LastLine | undefined {
  try {
    const { kind, seq, hash } = JSON.parse(line);
    if ((kind === 'entry' || kind === 'head') && Number.isSafeInteger(seq) && typeof hash === 'string')
      return { kind, seq, hash };
  } catch {
    // The line is not one of ours.
  }
  return undefined;
}
