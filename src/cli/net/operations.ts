/** Operations of the two APIs as the YAML documents type them: by method and path, with what goes in and what comes out. */
import type { components as BusinessParts, paths as BusinessPaths } from '../../api/generated/business.ts';
import type { components as PlatformParts, paths as PlatformPaths } from '../../api/generated/platform.ts';
import type { OperationType, ReplyOf } from '../../domain/operation.ts';

/** What the APIs answer with, by the names of the documents' schemas. */
export type Business = BusinessParts['schemas'];
export type Platform = PlatformParts['schemas'];

export type ApiName = 'Business' | 'Platform';
export type Method = 'get' | 'post' | 'put';

interface PathsOf {
  Business: BusinessPaths;
  Platform: PlatformPaths;
}

type PathWith<A extends ApiName, M extends Method> = {
  [P in keyof PathsOf[A]]: PathsOf[A][P] extends Record<M, object> ? P : never;
}[keyof PathsOf[A]];

type Operation<A extends ApiName, M extends Method, P extends keyof PathsOf[A]> =
  PathsOf[A][P] extends Record<M, infer T> ? T & OperationType : never;

/**
 * What an operation is given. Names are checked here; the values of queries and bodies are mostly what a person typed, which
 * the API judges.
 */
type Given<T extends OperationType> = Part<'path', T['parameters']['path']> &
  Part<'query', Loose<T['parameters']['query']>> &
  (T['requestBody'] extends { content: { 'application/json': infer Body } }
    ? { body: Loose<Body> }
    : unknown) & {
    about?: string | undefined;
  };

type Part<Name extends string, T> = [NonNullable<T>] extends [never]
  ? unknown
  : // biome-ignore lint/complexity/noBannedTypes: what `{}` is enough for may be left out
    {} extends T
    ? { [K in Name]?: T }
    : { [K in Name]: T };
type Loose<T> = { [K in keyof T]: unknown };

/** Calls an operation by its path; what it is given may be left out where there is nothing to give. */
export type CallBy<A extends ApiName, M extends Method> = <P extends PathWith<A, M>>(
  path: P,
  // biome-ignore lint/complexity/noBannedTypes: see above
  ...given: {} extends Given<Operation<A, M, P>> ? [Given<Operation<A, M, P>>?] : [Given<Operation<A, M, P>>]
) => Promise<ReplyOf<Operation<A, M, P>>>;

/** A path of a document with its parameters and its query filled in; what is undefined is left out of the query. */
export function fillPath(path: string, { path: parameters = {}, query = {} }: FilledFrom): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(parameters[name])),
  );
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) given.append(name, String(value));
  return given.size === 0 ? filled : `${filled}?${given}`;
}

export interface FilledFrom {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
}
