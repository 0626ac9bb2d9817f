/**
 * S3-compatible storage in memory, by the parts of its API that backups use. It verifies signatures (AWS Signature Version 4) as
 * the real one does, and fails when it is told to.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** 403 and 500 are answers; `page` is a web page with status 200; `silent` is none; `reset` cuts the connection within the request or the answer; `corrupt` changes what is read. */
export type Fault = 403 | 500 | 'page' | 'silent' | 'reset' | 'corrupt';

export interface S3Server extends AsyncDisposable {
  endpoint: string;
  /** What lies in the bucket, by key. */
  objects: Map<string, Buffer>;
  /** Uploads in parts that were neither completed nor given up. */
  uploads: Map<string, Map<number, Buffer>>;
  /** What was asked: method, path and query, such as `PUT /bucket/key?partNumber`. */
  requests: string[];
  /** Decides for each request whether it fails. */
  fault: (request: string) => Fault | undefined;
}

export const s3Key = {
  accessKeyId: 'AKIAEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
};
export const s3Bucket = 'backups';
export const s3Region = 'eu-central-1';
const pageSize = 5;

export async function startS3Server(
  options: { tls?: { cert: string; key: string } } = {},
): Promise<S3Server> {
  const state = { objects: new Map<string, Buffer>(), uploads: new Map<string, Map<number, Buffer>>() };
  const storage: Pick<S3Server, 'objects' | 'uploads' | 'requests' | 'fault'> = {
    ...state,
    requests: [],
    fault: () => undefined,
  };
  const handler = (request: IncomingMessage, response: ServerResponse) => {
    answer(storage, request, response).catch(() => response.destroy());
  };
  const server = options.tls ? createTlsServer(options.tls, handler) : createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(storage, {
    endpoint: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

async function answer(
  storage: Pick<S3Server, 'objects' | 'uploads' | 'requests' | 'fault'>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://s3');
  const name = `${request.method} ${url.pathname}${url.search === '' ? '' : `?${[...url.searchParams.keys()].sort().join('&')}`}`;
  storage.requests.push(name);
  const fault = storage.fault(name);
  if (fault === 'silent') return;
  if (fault === 'reset' && request.method === 'PUT') {
    request.once('data', () => request.destroy());
    return;
  }
  const body = await buffer(request);
  if (fault === 'page') {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<!doctype html><html><head><title>Console</title></head></html>');
    return;
  }
  const refuse = (status: number, code: string) => {
    response.writeHead(status, { 'content-type': 'application/xml' });
    response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`);
  };
  if (fault === 403) return refuse(403, 'AccessDenied');
  if (fault === 500) return refuse(500, 'InternalError');
  const unsigned = refusalOf(request, url, body);
  if (unsigned) return refuse(403, unsigned);
  const [, bucket, key = ''] = /^\/([^/]+)\/?(.*)$/.exec(decodeURIComponent(url.pathname)) ?? [];
  if (bucket !== s3Bucket) return refuse(404, 'NoSuchBucket');
  const reply = perform(storage, { method: request.method ?? '', key, query: url.searchParams, body });
  if (reply === undefined) return refuse(404, 'NoSuchKey');
  let { content } = reply;
  if (fault === 'corrupt' && content.length > 0) {
    content = Buffer.from(content);
    content[content.length - 1] = ~(content.at(-1) ?? 0);
  }
  response.writeHead(reply.status ?? 200, { ...reply.headers, 'content-length': content.length });
  if (fault === 'reset')
    return void response.write(content.subarray(0, content.length / 2), () => response.destroy());
  response.end(content);
}

interface Reply {
  status?: number;
  headers?: Record<string, string>;
  content: Buffer;
}

const xml = (text: string): Reply => ({
  headers: { 'content-type': 'application/xml' },
  content: Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>${text}`),
});
const etag = (content: Buffer) => `"${createHash('md5').update(content).digest('hex')}"`;

function perform(
  { objects, uploads }: Pick<S3Server, 'objects' | 'uploads'>,
  { method, key, query, body }: { method: string; key: string; query: URLSearchParams; body: Buffer },
): Reply | undefined {
  const uploadId = query.get('uploadId') ?? '';
  if (method === 'GET' && key === '') return list(objects, query);
  if (method === 'GET') {
    const content = objects.get(key);
    return content && { headers: { etag: etag(content) }, content };
  }
  if (method === 'PUT' && uploadId !== '') {
    uploads.get(uploadId)?.set(Number(query.get('partNumber')), body);
    return uploads.has(uploadId) ? { headers: { etag: etag(body) }, content: Buffer.alloc(0) } : undefined;
  }
  if (method === 'PUT') {
    objects.set(key, body);
    return { headers: { etag: etag(body) }, content: Buffer.alloc(0) };
  }
  if (method === 'POST' && query.has('uploads')) {
    const id = `upload-${uploads.size + 1}`;
    uploads.set(id, new Map());
    return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
  }
  if (method === 'POST') {
    const parts = uploads.get(uploadId);
    if (!parts) return undefined;
    const named = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber>/g)].map(([, n]) => Number(n));
    objects.set(key, Buffer.concat(named.map((n) => parts.get(n) ?? Buffer.alloc(0))));
    uploads.delete(uploadId);
    return xml(`<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>`);
  }
  if (method !== 'DELETE') return undefined;
  if (uploadId !== '') uploads.delete(uploadId);
  else objects.delete(key);
  return { status: 204, content: Buffer.alloc(0) };
}

/** A few at a time, so that whoever lists has to ask again. */
function list(objects: Map<string, Buffer>, query: URLSearchParams): Reply {
  const prefix = query.get('prefix') ?? '';
  const after = query.get('continuation-token') ?? '';
  const keys = [...objects.keys()].sort().filter((key) => key.startsWith(prefix) && key > after);
  const page = keys.slice(0, pageSize);
  const contents = page.map(
    (key) =>
      `<Contents><Key>${key}</Key><LastModified>2030-01-01T00:00:00.000Z</LastModified><Size>${objects.get(key)?.length}</Size></Contents>`,
  );
  const isMore = keys.length > page.length;
  const next = isMore ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '';
  return xml(
    `<ListBucketResult><Name>${s3Bucket}</Name><Prefix>${prefix}</Prefix><KeyCount>${page.length}</KeyCount><IsTruncated>${isMore}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`,
  );
}

/** The code of S3's refusal where a request is not signed as it should be; undefined where it is. */
function refusalOf(request: IncomingMessage, url: URL, body: Buffer): string | undefined {
  const [, keyId, day, region, names = '', given = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      request.headers.authorization ?? '',
    ) ?? [];
  if (keyId === undefined || day === undefined) return 'AccessDenied';
  if (keyId !== s3Key.accessKeyId) return 'InvalidAccessKeyId';
  if (region !== s3Region) return 'AuthorizationHeaderMalformed';
  const header = (name: string) => String(request.headers[name] ?? '').trim();
  const time = header('x-amz-date');
  const at = Date.parse(time.replace(/^(....)(..)(..T..)(..)(..)Z$/, '$1-$2-$3:$4:$5Z'));
  if (Math.abs(at - Date.now()) > 900_000 || !time.startsWith(day)) return 'RequestTimeTooSkewed';
  const signed = names.split(';');
  if (!['host', 'x-amz-content-sha256', 'x-amz-date'].every((one) => signed.includes(one)))
    return 'AccessDenied';
  const payload = header('x-amz-content-sha256');
  const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');
  if (payload !== 'UNSIGNED-PAYLOAD' && payload !== sha256(body)) return 'XAmzContentSHA256Mismatch';
  const escaped = (text: string) =>
    encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  const query = [...url.searchParams]
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .sort()
    .join('&');
  const canonical = [
    request.method,
    url.pathname
      .split('/')
      .map((part) => escaped(decodeURIComponent(part)))
      .join('/'),
    query,
    ...signed.map((name) => `${name}:${header(name).replace(/\s+/g, ' ')}`),
    '',
    names,
    payload,
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const hmac = (key: Buffer | string, text: string) => createHmac('sha256', key).update(text).digest();
  const signing = [region, 's3', 'aws4_request'].reduce(hmac, hmac(`AWS4${s3Key.secretAccessKey}`, day));
  const expected = hmac(signing, `AWS4-HMAC-SHA256\n${time}\n${scope}\n${sha256(canonical)}`);
  return timingSafeEqual(expected, Buffer.from(given, 'hex')) ? undefined : 'SignatureDoesNotMatch';
}
