/**
 * The shape of an operation: a plain function named after its `operationId` in the YAML, given what it works with and
 * one typed request. It knows nothing of HTTP; the types of both come from the document.
 */

/** The person who asks, as authenticated, and from where. */
export interface Caller {
  userId: string;
  sourceAddress: string;
}

/** The headers of a Business write, checked (contract, "Limits"). */
export interface CommandHeaders {
  idempotencyKey: string;
  auditReason: string;
}

export interface WriteHeaders {
  idempotencyKey?: string;
  auditReason: string;
  /** The entity tags of which one must be that of what stands, or `*`. */
  ifMatch?: readonly string[];
}

export interface Tagged<T> {
  etag: string;
  body: T;
}

/** The part of a generated operation type that requests are made from. */
export interface OperationType {
  // biome-ignore lint/complexity/noBannedTypes: `{}` is what an operation without parameters has
  parameters: { path?: {}; query?: {}; header?: {} };
  requestBody?: unknown;
  // biome-ignore lint/complexity/noBannedTypes: responses are keyed by status
  responses: {};
}

/** What an operation is given: path, query and body have passed the document's schema. */
export interface Request<T extends OperationType = OperationType> {
  caller: Caller;
  path: NonNullable<T['parameters']['path']>;
  query: NonNullable<T['parameters']['query']>;
  body: JsonOf<T['requestBody']>;
  command: CommandHeaders;
  /** Of an operation whose replies have an entity tag. */
  write: WriteHeaders;
  /** Milliseconds since 1970, one reading a request. */
  now: number;
}

export type ReplyOf<T extends OperationType> = T['responses'] extends { 201: infer R }
  ? JsonOf<R>
  : T['responses'] extends { 200: infer R }
    ? JsonOf<R>
    : never;

/** What a write answers with; `replayed` when the same command had run before. */
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
 * What an operation returns: where the document says that its reply has an entity tag, with that. Otherwise only commands have
 * headers in the document, and say what became of the command.
 */
type AnswerOf<T extends OperationType> = T['responses'] extends { 200: { headers: { ETag: string } } }
  ? Tagged<ReplyOf<T>>
  : [NonNullable<T['parameters']['header']>] extends [never]
    ? ReplyOf<T>
    : CommandReply<ReplyOf<T>>;

type JsonOf<T> = T extends { content: { 'application/json': infer Body } | { 'text/csv': infer Body } }
  ? Body
  : undefined;
