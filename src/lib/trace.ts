/**
 * Traces: which span is active, for code that adds a child span. Nothing here knows where spans are exported
 * (`service/compose/metrics/tracing.ts`). Without tracing there is no span, and each of these costs a function call.
 *
 * Spans hold IDs of ours, names of operations, and results: no names of people, no text that a person typed, no secrets.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { DomainError } from '../domain/error.ts';

export type Attributes = Record<string, string | number | boolean | undefined>;

/** A span of another program, as `traceparent` names it. */
export interface SpanReference {
  traceId: string;
  spanId: string;
  sampled: boolean;
}

export interface Span extends SpanReference {
  /** What all spans below the same beginning share: the command that the rest follows from, once it is known. */
  readonly shared: { commandId?: string };
  /** Begins one below it, also when it has ended. */
  child(name: string, attributes?: Attributes, links?: readonly SpanReference[]): Span;
  set(attributes: Attributes): void;
  /** Ends it; a failure by its code, since messages can name people. */
  end(failure?: string): void;
}

interface SpanStart {
  kind?: 'server' | 'internal';
  /** The trace goes on from here, and whether it is kept was decided there. */
  parent?: SpanReference;
  /** It has to do with these. */
  links?: readonly SpanReference[];
  attributes?: Attributes;
}

export interface Tracer {
  begin(name: string, start?: SpanStart): Span;
}

const active = new AsyncLocalStorage<Span | undefined>();

/** The span that what runs now belongs to. */
export function activeSpan(): Span | undefined {
  return active.getStore();
}

/** Runs something as a part of a span, or of none. */
export function within<T>(span: Span | undefined, body: () => T): T {
  // Without tracing, every request would pay for what no code asks for.
  return span === activeSpan() ? body() : active.run(span, body);
}

/** Runs something in a span of its own below the active one; where there is none, just runs it. */
export async function inSpan<T>(
  name: string,
  attributes: Attributes,
  body: () => Promise<T>,
  parent: Span | undefined = activeSpan(),
): Promise<T> {
  if (!parent) return body();
  const span = parent.child(name, attributes);
  try {
    const result = await within(span, body);
    span.end();
    return result;
  } catch (error) {
    span.end(failureOf(error));
    throw error;
  }
}

/** What a span says of a failure. */
export function failureOf(error: unknown): string {
  return error instanceof DomainError ? error.code : error instanceof Error ? error.name : 'error';
}

const traceparent = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** The header `traceparent` (https://www.w3.org/TR/trace-context/); undefined where it is not well-formed. */
export function parseTraceparent(header: unknown): SpanReference | undefined {
  if (typeof header !== 'string') return undefined;
  const [, traceId = '', spanId = '', flags = ''] = traceparent.exec(header) ?? [];
  if (/^0*$/.test(traceId) || /^0*$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
