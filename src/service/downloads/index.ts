/**
 * Downloads for the service's people: the portable client, which the program contains, and executables for their
 * machines, which are a release's files, unpacked below the data directory. Owns the page, the install scripts and
 * the files; none needs a token. Missing files are not offered.
 *
 * Flow: the files of a release, and the portable client (src/lib/packaging.ts) → offer.ts → page.ts, scripts.ts → the
 * addresses here, the same at the Platform API, where people sign in, and at the console.
 */
import type { RequestListener } from 'node:http';
import express, {
  type ErrorRequestHandler,
  type Express,
  type NextFunction,
  type Request,
  type Response,
} from 'express';
import { addressNotFound, errorReply } from '../../api/http/errors.ts';
import { DomainError } from '../../domain/error.ts';
import type { Logger } from '../../lib/log.ts';
import { portableClient } from '../../lib/packaging.ts';
import type { TrustedProxies } from '../../lib/source-address.ts';
import { createPortable, findFile, listOf, type Offer, readOffer, visitorSystem } from './offer.ts';
import { downloadPage, pageHeaders } from './page.ts';
import { installScript } from './scripts.ts';
import { createTransfers, type TransferLimits, type Transfers, usualTransfers } from './transfers.ts';

export interface DownloadsOptions {
  dataDir: string;
  /** The public URL of the Platform API, at which people sign in. */
  platformUrl: string;
  portable?: typeof portableClient;
  log: Logger;
  /** Trusted proxies of the listeners, to count downloads by client address. */
  proxies: TrustedProxies;
  transfers?: TransferLimits;
}

export interface Downloads {
  owns(path: string): boolean;
  at(url: string): RequestListener;
}

const scripts = ['/install.sh', '/install.ps1'] as const;
const packages = { '/andromeda.mjs': 'mjs', '/andromeda.tgz': 'tgz' } as const;

export function createDownloads(options: DownloadsOptions): Downloads {
  const portable = createPortable(options.dataDir, options.portable ?? portableClient);
  const read = async () => readOffer(options.dataDir, await portable());
  const transfers = createTransfers(options.proxies, options.transfers ?? usualTransfers);
  return {
    owns: (path) =>
      path === '/download' ||
      path.startsWith('/download/') ||
      Object.hasOwn(packages, path) ||
      (scripts as readonly string[]).includes(path),
    at: (url) => createApp(options, { url, read, transfers }),
  };
}

interface DownloadParts {
  url: string;
  read(): Promise<Offer>;
  transfers: Transfers;
}

function createApp(options: DownloadsOptions, { url, read, transfers }: DownloadParts): Express {
  const app = express();
  app.disable('x-powered-by');
  app.set('case sensitive routing', true);
  app.set('strict routing', true);
  app.set('etag', 'strong');
  app.use(refuseOtherMethods);
  // The page's links are relative.
  app.get('/download/', (_request, response) => response.redirect(308, '../download'));
  app.get('/download', async (request, response) => {
    const hint = request.headers['sec-ch-ua-platform'];
    const system = visitorSystem(request.headers['user-agent'] ?? '', typeof hint === 'string' ? hint : '');
    const page = downloadPage(await read(), { url, platformUrl: options.platformUrl, system });
    response
      .set({ ...pageHeaders, Vary: 'User-Agent, Sec-CH-UA-Platform' })
      .type('html')
      .send(page);
  });
  for (const path of scripts) {
    app.get(path, async (_request, response) => {
      const script = installScript(path, await read(), { ...options, url });
      response.set(textHeaders).send(script);
    });
  }
  app.get('/download/list.json', async (_request, response) => {
    response.set(fileHeaders).json(listOf(await read(), options.platformUrl));
  });
  for (const [path, kind] of Object.entries(packages)) {
    app.get(path, async (request, response, next) => {
      const { portable } = await read();
      const type = kind === 'mjs' ? 'text/javascript; charset=utf-8' : 'application/gzip';
      const asked = { request, response, next };
      sendFile(transfers, asked, portable[kind], { type, attachment: path.slice(1) });
    });
  }
  app.get('/download/:name', async (request, response, next) => {
    const { name } = request.params;
    const file = findFile(await read(), name);
    if (!file) throw addressNotFound();
    const type = name.endsWith('.json') ? 'application/json' : 'application/octet-stream';
    sendFile(transfers, { request, response, next }, file, { type, attachment: name });
  });
  app.use(() => {
    throw addressNotFound();
  });
  app.use(answerErrors(options.log));
  return app;
}

function answerErrors(log: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    // The response has begun already, or the client has gone.
    if (response.headersSent || response.destroyed) return void response.destroy();
    const { status, headers, body, unexpected } = replyFor(error);
    if (unexpected) log.error('clients.failed', { path: request.path, error });
    for (const name of ['ETag', 'Content-Disposition', 'Last-Modified', 'Accept-Ranges', 'Content-Length'])
      response.removeHeader(name);
    // A download slot takes longer to become free than other resources.
    const later = response.hasHeader('Retry-After')
      ? { 'Retry-After': response.getHeader('Retry-After') }
      : {};
    response
      .status(status)
      .set({ 'Cache-Control': 'no-store', ...headers, ...later })
      .json(body);
  };
}

/** Caches revalidate a file each time, and do not fetch an unchanged one. */
const fileHeaders = {
  'Cache-Control': 'no-cache',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
};
const textHeaders = { ...fileHeaders, 'Content-Type': 'text/plain; charset=utf-8' };

function refuseOtherMethods({ method }: Request, response: Response, next: NextFunction): void {
  if (method === 'GET' || method === 'HEAD') {
    next();
    return;
  }
  const message = 'This address is only read, with GET or HEAD.';
  const headers = { Allow: 'GET, HEAD', Connection: 'close', 'Cache-Control': 'no-store' };
  response.status(405).set(headers).json({ code: 'invalid_request', message, retryable: false });
}

/** Clamps a suffix range to the file: in HTTP (RFC 9110, 14.1.2) a longer one means all of the file, but the sender refuses it. */
function clampSuffix({ headers }: Request, bytes: number): void {
  const [, suffix] = /^ *bytes=-(\d+) *$/.exec(headers.range ?? '') ?? [];
  if (suffix !== undefined && Number(suffix) > bytes) headers.range = `bytes=-${bytes}`;
}

function sendFile(
  transfers: Transfers,
  { request, response, next }: { request: Request; response: Response; next: NextFunction },
  file: { directory: string; name: string; bytes?: number; sha256?: string },
  { type, attachment }: { type: string; attachment: string },
): void {
  if (file.sha256 !== undefined) response.setHeader('ETag', `"${file.sha256}"`);
  // Only a transfer takes a slot.
  if (request.method === 'GET' && !request.fresh) transfers.begin(request, response, file.bytes ?? 0);
  if (file.bytes !== undefined) clampSuffix(request, file.bytes);
  response.set({ ...fileHeaders, 'Content-Type': type });
  response.attachment(attachment).set('Content-Type', type);
  const options = { root: file.directory, cacheControl: false, dotfiles: 'deny' as const };
  response.sendFile(file.name, options, (error) => {
    if (error) next(error);
  });
}

/** The usual reply, except for errors of the file sender that have a status of their own. */
function replyFor(error: unknown): ReturnType<typeof errorReply> {
  const status = error instanceof Error && 'status' in error ? error.status : undefined;
  if (status === 404) return errorReply(addressNotFound());
  if (status === 412)
    return errorReply(new DomainError('precondition_failed', 'The file is not the one that was asked for.'));
  if (status !== 416) return errorReply(error);
  const { headers } = error as Error & { headers?: Record<string, string> };
  const body = { code: 'invalid_request', message: 'The file has no such range.', retryable: false };
  return { status: 416, headers: headers ?? {}, body, unexpected: false };
}
