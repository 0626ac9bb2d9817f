/** The files of the pages. A page whose modules are gone, as after an upgrade, reloads once (the router's `lazyRouteComponent`). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '../../domain/error.ts';
import type { ConsoleFile } from '../../lib/packaging.ts';

export type Files = () => Promise<ReadonlyMap<string, ConsoleFile>>;

/** The file of the page. Every address that is no file is an address of the page. */
const page = 'index.html';

export async function sendFile(
  files: Files,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<void> {
  const isAsset = /^\/(?:assets\/|\.well-known\/|[\w-]+\.[a-z]+$)/.test(path);
  const file = (await files()).get(isAsset ? path.slice(1) : page);
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

/** The smallest encoding that the file has and the browser accepts. */
function encodingFor(file: ConsoleFile, accepted = ''): 'br' | 'gzip' | undefined {
  const names = accepted.split(',').map((one) => one.split(';')[0]?.trim());
  return (['br', 'gzip'] as const).find((name) => file[name] && names.includes(name));
}
