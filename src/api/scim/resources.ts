/** What requests to Users and Groups have in common: ETags, lists, and which method does what. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { type Attributes, isAttributes, valueIn } from '../../domain/scim/attributes.ts';
import { ScimError } from '../../domain/scim/error.ts';
import { type Filter, matches, readFilter } from '../../domain/scim/filter.ts';
import { patched } from '../../domain/scim/patch.ts';
import { isWanted, listBody, namesTag, pick, readPage, readWanted } from '../../domain/scim/resource.ts';

export interface ScimReply {
  status: number;
  headers?: Record<string, string>;
  body?: object;
}

export interface ScimRequest {
  method: string;
  id: string | undefined;
  query: URLSearchParams;
  body: unknown;
  address: string;
  headers: IncomingHttpHeaders;
  now: number;
}

/** Who asks, when, and what is checked of the resource as it is before it is changed. */
export interface Change extends Pick<ScimRequest, 'address' | 'now'> {
  check(resource: Attributes): void;
}

/** A kind of resource. What it returns has `meta` with `version`. */
export interface Kind {
  most: number;
  count(): Promise<number>;
  /** In order of IDs. `members`: with those of groups. */
  list(page: { after?: string; offset?: number; limit: number }, members: boolean): Promise<Attributes[]>;
  /** Those among which all are that the filter finds, where an index knows; else undefined. */
  narrow(filter: Filter): Promise<Attributes[] | undefined> | undefined;
  find(id: string): Promise<Attributes | undefined>;
  create(body: unknown, change: Change): Promise<Attributes>;
  /** Makes of the resource what `next` returns. Throws 404. */
  change(id: string, next: (resource: Attributes) => unknown, change: Change): Promise<Attributes>;
  remove(id: string, change: Change): Promise<void>;
}

/** The resource with its `meta`. The version is a hash of the content, so it changes with every change. */
export function withMeta(
  resource: Attributes,
  {
    type,
    base,
    created,
    lastModified,
  }: { type: 'User' | 'Group'; base: string; created: string; lastModified: string },
): Attributes {
  const hash = createHash('sha256').update(JSON.stringify(resource)).digest('base64url').slice(0, 22);
  const location = `${base}/${type}s/${resource['id']}`;
  return {
    ...resource,
    meta: { resourceType: type, created, lastModified, location, version: `W/"${hash}"` },
  };
}

/** Throws 404. */
export function noResource(): ScimError {
  return new ScimError(404, 'There is no such resource here.');
}

export async function answerResource(kind: Kind, request: ScimRequest): Promise<ScimReply> {
  const { method, id, body, headers } = request;
  const change = { address: request.address, now: request.now, check: checkOf(headers['if-match']) };
  if (id === undefined) {
    if (method === 'GET') return { status: 200, body: await list(kind, request.query) };
    if (method === 'POST') return reply(await kind.create(body, change), request, 201);
  } else if (method === 'GET') {
    const resource = await kind.find(id);
    if (!resource) throw noResource();
    const known = headers['if-none-match'];
    if (known === undefined || !namesTag(known, resource)) return reply(resource, request);
    return { status: 304, headers: { ETag: tagOf(resource) } };
  } else if (method === 'PUT') return reply(await kind.change(id, () => body, change), request);
  else if (method === 'PATCH') {
    return reply(await kind.change(id, (resource) => patched(resource, body), change), request);
  } else if (method === 'DELETE') {
    await kind.remove(id, change);
    return { status: 204 };
  }
  throw new ScimError(405, 'This address does not take this method.');
}

function checkOf(header: string | undefined) {
  return (resource: Attributes) => {
    if (header !== undefined && !namesTag(header, resource)) {
      throw new ScimError(412, 'The resource is another one by now. Read it again.');
    }
  };
}

function tagOf(resource: Attributes): string {
  return String(valueIn(valueIn(resource, 'meta'), 'version'));
}

function reply(resource: Attributes, { query }: ScimRequest, status = 200): ScimReply {
  const { meta } = resource;
  const location = isAttributes(meta) ? String(meta['location']) : '';
  const headers = { ETag: tagOf(resource), Location: location };
  return { status, headers, body: pick(resource, readWanted(query)) };
}

const batch = 200;

async function list(kind: Kind, query: URLSearchParams): Promise<object> {
  const wanted = readWanted(query);
  const page = readPage(query, kind.most);
  const { startIndex, count } = page;
  const withMembers = isWanted(wanted, 'members');
  const text = query.get('filter');
  if (text === null || text.trim() === '') {
    const total = await kind.count();
    const found = count === 0 ? [] : await kind.list({ offset: startIndex - 1, limit: count }, withMembers);
    return listBody(
      found.map((one) => pick(one, wanted)),
      page,
      total,
    );
  }
  const filter = readFilter(text);
  const found: Attributes[] = [];
  let total = 0;
  for await (const resource of all(kind, filter, withMembers || /members/i.test(text))) {
    if (!matches(filter, resource)) continue;
    total += 1;
    if (total >= startIndex && found.length < count) found.push(pick(resource, wanted));
  }
  return listBody(found, page, total);
}

/** Every resource that the filter could find, some at a time. */
async function* all(kind: Kind, filter: Filter, withMembers: boolean): AsyncGenerator<Attributes> {
  const narrowed = await kind.narrow(filter);
  if (narrowed) return yield* narrowed;
  const limit = Math.min(batch, kind.most);
  for (let after = ''; ; ) {
    const some = await kind.list({ after, limit }, withMembers);
    yield* some;
    if (some.length < limit) return;
    after = String(some.at(-1)?.['id']);
    await setImmediate();
  }
}
