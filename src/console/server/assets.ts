/** The files of the pages: with a hash in their name and for good, or the page itself, asked for anew each time. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '../../domain/error.ts';
import type { ConsoleFile } from '../../lib/packaging.ts';
import type { KeptFiles } from './kept-files.ts';

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
