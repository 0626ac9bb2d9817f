/**
 * The files of pages of other versions, where several servers share a database: while they are upgraded one after the other,
 * any of them is asked for the files that a page of another one names, and a page that was open before asks later for what
 * it has not loaded yet. So a server puts its files into the database before its first page names them, and answers from
 * there for those that it does not have itself.
 *
 * A single server keeps none: a page that lacks a part of itself then loads itself anew, once (`lazyRouteComponent` of the
 * router does).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress } from 'node:zlib';
import { DomainError } from '../../domain/error.ts';
import type { Logger } from '../../lib/log.ts';
import type { ConsoleFile } from '../../lib/packaging.ts';
import type { Store } from '../../store/engine/index.ts';
import { findConsoleFile, keepConsoleFiles } from '../../store/servers/console-files.ts';

export type KeptFiles = ReturnType<typeof createKeptFiles>;

const hour = 3_600_000;
/** Pages name them: this is written down so often at most, and where it failed, tried again after so long. */
const againMs = 6 * hour;
const retryMs = 5_000;
const forgetMs = 7 * 24 * hour;
/** A page waits for the database for so long. */
const patienceMs = 10_000;
/** What a page loads; anything else is not looked for. */
const kept = /^assets\/[\w.-]{1,100}\.(?:js|css)$/;

export function createKeptFiles({ store, log, uptime }: { store: Store; log: Logger; uptime(): number }) {
  let areKept = false;
  let nextAt = Number.NEGATIVE_INFINITY;
  let keeping: Promise<void> | undefined;

  async function write(files: ReadonlyMap<string, ConsoleFile>): Promise<void> {
    nextAt = uptime() + retryMs;
    try {
      const all = [...files].filter(([path]) => kept.test(path));
      const packed = await Promise.all(
        all.map(async ([path, { type, tag, plain, br }]) => {
          return { path, type, tag, packed: br ?? (await promisify(brotliCompress)(plain)) };
        }),
      );
      await store.write((tx) => keepConsoleFiles(tx, packed, forgetMs));
      areKept = true;
      nextAt = uptime() + againMs;
    } catch (error) {
      log.warn('console.files.not_kept', { error });
    }
  }

  return {
    /** Resolves when every server can answer for these, or after a while in which the database did not take them. */
    async keep(files: ReadonlyMap<string, ConsoleFile>): Promise<void> {
      if (!keeping && uptime() >= nextAt) {
        keeping = write(files).finally(() => {
          keeping = undefined;
        });
      }
      if (keeping && !areKept) await Promise.race([keeping, sleep(patienceMs, undefined, { ref: false })]);
    },
    async find(path: string): Promise<ConsoleFile | undefined> {
      if (!kept.test(path)) return undefined;
      const file = await findConsoleFile(store.read, path);
      if (!file) return undefined;
      const { type, tag, packed: br } = file;
      return { type, tag, br, plain: await promisify(brotliDecompress)(br) };
    },
  };
}

export type Files = () => Promise<ReadonlyMap<string, ConsoleFile>>;

/** The name of the page in the files; every address that is no file is a place in it. */
const page = 'index.html';

export async function sendFile(
  { files, keptFiles }: { files: Files; keptFiles: KeptFiles | undefined },
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<void> {
  const isAsset = path.startsWith('/assets/') || /^\/[\w-]+\.[a-z]+$/.test(path);
  const own = await files();
  if (!isAsset) await keptFiles?.keep(own);
  const file = own.get(isAsset ? path.slice(1) : page) ?? (await keptFiles?.find(path.slice(1)));
  if (!file) throw new DomainError('not_found', 'There is no such file.');
  const { type, tag } = file;
  const encoding = encodingFor(file, request.headers['accept-encoding']);
  const headers = {
    'Content-Type': type,
    'Cache-Control': path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
    ETag: `"${tag}${encoding ? `-${encoding}` : ''}"`,
    Vary: 'Accept-Encoding',
  };
  if (request.headers['if-none-match'] === headers.ETag) {
    response.writeHead(304, headers).end();
    return;
  }
  const body = (encoding && file[encoding]) ?? file.plain;
  response.writeHead(200, {
    ...headers,
    'Content-Length': body.length,
    ...(encoding && { 'Content-Encoding': encoding }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** The smaller first, of what there is and the browser reads. */
function encodingFor(file: ConsoleFile, accepted = ''): 'br' | 'gzip' | undefined {
  const names = accepted.split(',').map((one) => one.split(';')[0]?.trim());
  return (['br', 'gzip'] as const).find((name) => file[name] && names.includes(name));
}
