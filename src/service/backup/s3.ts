/**
 * Backups in S3-compatible storage. An object appears whole or not at all; parts of one whose upload was killed are removed at
 * the next attempt, which finds the upload's ID in the working directory.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { S3mini } from 's3mini';
import { writeWhole } from '../../lib/whole-file.ts';
import { readS3Credentials } from './key-files.ts';
import type { Stored } from './names.ts';
import { boundedFetch, type S3Limits, usualLimits } from './s3-fetch.ts';
import { s3Sentence } from './s3-messages.ts';
import {
  type BackupStorage,
  type Bucket,
  storageError,
  type WriteOptions,
  withSentences,
} from './storage.ts';

/** Every S3 takes so many parts of one object. */
const mostParts = 9_000;
/** How many objects of others are looked through. */
const mostListed = 20_000;

export async function openBucket(
  settings: Bucket,
  { workDir, limits = usualLimits }: { workDir: string; limits?: S3Limits },
): Promise<BackupStorage> {
  const { bucket, prefix, endpoint } = settings;
  const client = await connect(settings, limits);
  const key = (name: string) => `${prefix}${name}`;
  const storage = `s3://${bucket}`;
  const note = join(workDir, 'upload.json');

  async function* read(name: string): AsyncIterable<Uint8Array> {
    const reply = await client.getObjectResponse(key(name));
    if (!reply?.body) throw storageError(`There is no ${storage}/${key(name)}.`);
    yield* reply.body;
  }

  return withSentences(
    {
      nameOf: (name) => `${storage}/${key(name)}`,
      async list(): Promise<Stored[]> {
        const page = await client.listObjectsPaged('/', `${prefix}andromeda-`, mostListed);
        if (!page) throw storageError(`There is no bucket ${bucket} at ${endpoint}.`);
        const objects = page.objects ?? [];
        return objects.map(({ Key, Size }) => ({ name: Key.slice(prefix.length), bytes: Number(Size) }));
      },
      read,
      remove: async (name) => void (await client.deleteObject(key(name))),
      async write(name, source, options) {
        await upload(client, key(name), { source, options, least: limits.partBytes, note });
        try {
          await options.check(read(name));
          options.signal?.throwIfAborted();
        } catch (error) {
          // What cannot be read back is no backup, whatever the storage said.
          await client.deleteObject(key(name)).catch(() => {});
          throw error;
        }
      },
      async sweep() {
        const left = readUpload(note);
        // Where it cannot be, it costs some space, until the storage's own rules remove it.
        if (left) await client.abortMultipartUpload(left.key, left.uploadId).catch(() => {});
      },
    },
    (error) => s3Sentence(error, settings),
  );
}

async function connect(settings: Bucket, limits: S3Limits): Promise<S3mini> {
  const { bucket, endpoint, region, credentials, ca } = settings;
  if (ca !== undefined) await trust(ca);
  return new S3mini({
    ...readS3Credentials(credentials),
    endpoint: `${endpoint}/${bucket}`,
    region,
    fetch: requireLists(boundedFetch(limits), settings),
  });
}

/** A page that something else answers with, such as a console, must not pass for an empty list. */
function requireLists(send: typeof fetch, { endpoint, bucket }: Bucket): typeof fetch {
  return async (input, init) => {
    const reply = await send(input, init);
    if (!reply.ok || !new URL(String(input)).searchParams.has('list-type')) return reply;
    const text = await reply.text();
    if (!/<(\w+:)?ListBucketResult[\s/>]/.test(text))
      throw storageError(
        `What answers at ${endpoint} (bucket ${bucket}) is no S3: it sent something else than a list. Look at backup.s3.endpoint.`,
      );
    return new Response(text, reply);
  };
}

/** In parts, so that little is in memory. `note`: the file that says which upload is under way. */
async function upload(
  client: S3mini,
  key: string,
  {
    source,
    options,
    least,
    note,
  }: { source: AsyncIterable<Uint8Array>; options: WriteOptions; least: number; note: string },
): Promise<void> {
  const { bytes, signal } = options;
  const partBytes = Math.max(least, Math.ceil(bytes / mostParts));
  let uploadId: string | undefined;
  const done: { partNumber: number; etag: string }[] = [];
  try {
    for await (const part of partsOf(source, partBytes)) {
      signal?.throwIfAborted();
      // One that fits into a single part needs no upload in parts.
      if (part.isLast && uploadId === undefined)
        return void (await client.putObject(key, part.content, 'application/octet-stream'));
      if (uploadId === undefined) {
        uploadId = await client.getMultipartUploadId(key, 'application/octet-stream');
        writeWhole(note, JSON.stringify({ key, uploadId }));
      }
      done.push(await client.uploadPart(key, uploadId, part.content, done.length + 1));
    }
    if (uploadId !== undefined) await client.completeMultipartUpload(key, uploadId, done);
  } catch (error) {
    if (uploadId !== undefined) await client.abortMultipartUpload(key, uploadId).catch(() => {});
    throw error;
  }
  rmSync(note, { force: true });
}

/** Of the same length all but the last, as some storages want it. */
async function* partsOf(
  source: AsyncIterable<Uint8Array>,
  partBytes: number,
): AsyncGenerator<{ content: Uint8Array<ArrayBuffer>; isLast: boolean }> {
  let part = Buffer.allocUnsafeSlow(partBytes);
  let used = 0;
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length; ) {
      if (used === partBytes) {
        yield { content: part, isLast: false };
        part = Buffer.allocUnsafeSlow(partBytes);
        used = 0;
      }
      const piece = chunk.subarray(at, at + partBytes - used);
      part.set(piece, used);
      used += piece.length;
      at += piece.length;
    }
  }
  yield { content: part.subarray(0, used), isLast: true };
}

function readUpload(note: string): { key: string; uploadId: string } | undefined {
  try {
    return JSON.parse(readFileSync(note, 'utf8')) as { key: string; uploadId: string };
  } catch {
    return undefined;
  }
}

/** For this process, which does nothing else. */
async function trust(file: string): Promise<void> {
  const { getCACertificates, setDefaultCACertificates } = await import('node:tls');
  try {
    setDefaultCACertificates([...getCACertificates('default'), readFileSync(file, 'utf8')]);
  } catch (error) {
    throw storageError(`backup.s3.ca: ${file} holds no certificate that can be read.`, error);
  }
}
