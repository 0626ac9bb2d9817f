/**
 * The type of an operation: a plain function named after its `operationId` in the YAML, which takes its dependencies
 * and one typed request. It knows nothing of HTTP; the types of request and reply are generated from the document.
 */

/** The authenticated person who makes the request, and the source address. */
export interface Caller {
  userId: string;
  sourceAddress: string;
}

/** The validated headers of a Business write (contract, "Limits"). */
export interface CommandHeaders {
  idempotencyKey: string;
  auditReason: string;
}

export interface WriteHeaders {
  idempotencyKey?: string;
  auditReason: string;
  /** The entity tags of If-Match, or `*`: one of them must match the present state. */
  ifMatch?: readonly string[];
}

export interface Tagged<T> {
  etag: string;
  body: T;
}

/** The part of a generated operation type that requests are derived from. */
export interface OperationType {
  // biome-ignore lint/complexity/noBannedTypes: `{}` is what an operation without parameters has
  parameters: { path?: {}; query?: {}; header?: {} };
  requestBody?: unknown;
  // biome-ignore lint/complexity/noBannedTypes: responses are keyed by status
  responses: {};
}

/** The input of an operation; path, query and body have passed the document's schema. */
export interface Request<T extends OperationType = OperationType> {
  caller: Caller;
  path: NonNullable<T['parameters']['path']>;
  query: NonNullable<T['parameters']['query']>;
  body: JsonOf<T['requestBody']>;
  command: CommandHeaders;
  /** Set for operations whose replies have an entity tag. */
  write: WriteHeaders;
  /** Milliseconds since 1970, read once per request. */
  now: number;
}

export type ReplyOf<T extends OperationType> = T['responses'] extends { 201: infer R }
  ? JsonOf<R>
  : T['responses'] extends { 200: infer R }
    ? JsonOf<R>
    : never;

/** The reply to a write; `replayed` if the same command had run before. */
export interface CommandReply<T> {
  commandId: string;
  replayed: boolean;
  result: T;
}

export type OperationOf<T extends OperationType, Deps> = (
  deps: Deps,
  request: Request<T>,
) => Promise<AnswerOf<T>>;

/**
 * The result type of an operation: with an entity tag if the document declares one for the reply, with the command's
 * outcome if the document declares request headers (only commands have them), else the reply alone.
 */
type AnswerOf<T extends OperationType> = T['responses'] extends { 200: { headers: { ETag: string } } }
  ? Tagged<ReplyOf<T>>
  : [NonNullable<T['parameters']['header']>] extends [never]
    ? ReplyOf<T>
    : CommandReply<ReplyOf<T>>;

type JsonOf<T> = T extends { content: { 'application/json': infer Body } | { 'text/csv': infer Body } }
  ? Body
  : undefined;
