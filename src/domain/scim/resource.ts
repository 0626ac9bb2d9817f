/** What is answered over SCIM: the attributes that were asked for, lists, and errors (RFC 7644, sections 3.4 and 3.12). */
import { type Attributes, valueIn } from './attributes.ts';
import { badScim, type ScimError } from './error.ts';

/** The attributes that a caller wants; `id`, `schemas` and `meta` are always there. */
export interface Wanted {
  only: ReadonlySet<string> | undefined;
  without: ReadonlySet<string>;
}

const always: ReadonlySet<string> = new Set(['id', 'schemas', 'meta']);

/** Reads `attributes` and `excludedAttributes`. Of `name.familyName`, all of `name` is meant. */
export function readWanted(query: URLSearchParams): Wanted {
  const names = (parameter: string) =>
    (query.get(parameter) ?? '')
      .split(',')
      .map((name) => name.trim().toLowerCase())
      .filter(Boolean);
  const only = names('attributes').map((name) =>
    name.replace(/^urn:ietf:params:scim:schemas:core:2\.0:(user|group):/, '').replace(/^(\w+)\..*$/, '$1'),
  );
  return { only: only.length > 0 ? new Set(only) : undefined, without: new Set(names('excludedAttributes')) };
}

/** Whether an attribute is to be in the answer. */
export function isWanted({ only, without }: Wanted, name: string): boolean {
  const folded = name.toLowerCase();
  return always.has(folded) || (!without.has(folded) && (only?.has(folded) ?? true));
}

/** The resource with what was asked for. */
export function pick(resource: Attributes, wanted: Wanted): Attributes {
  return Object.fromEntries(Object.entries(resource).filter(([name]) => isWanted(wanted, name)));
}

/** A page: which it is, counted from 1, and how many of them. */
export interface Page {
  startIndex: number;
  count: number;
}

/** Reads `startIndex` and `count`, of which more than `most` is `most`. */
export function readPage(query: URLSearchParams, most: number): Page {
  const number = (name: string, usual: number) => {
    const text = query.get(name);
    if (text === null) return usual;
    if (/^-?\d{1,9}$/.test(text)) return Number(text);
    throw badScim('invalidValue', `${name} has to be a whole number.`);
  };
  const count = Math.min(Math.max(number('count', most), 0), most);
  return { startIndex: Math.max(number('startIndex', 1), 1), count };
}

export function listBody(resources: readonly Attributes[], { startIndex }: Page, totalResults: number) {
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
    totalResults,
    startIndex,
    itemsPerPage: resources.length,
    Resources: resources,
  };
}

export function errorBody({ status, message, scimType }: Pick<ScimError, 'status' | 'message' | 'scimType'>) {
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
    status: String(status),
    ...(scimType && { scimType }),
    detail: message,
  };
}

/** Whether a header with ETags names this one; weak ones are compared as well (RFC 7644, section 3.14). */
export function namesTag(header: string, resource: Attributes): boolean {
  const bare = (tag: string) => tag.trim().replace(/^W\//, '');
  const version = bare(String(valueIn(valueIn(resource, 'meta'), 'version')));
  return header.split(',').some((tag) => tag.trim() === '*' || bare(tag) === version);
}
