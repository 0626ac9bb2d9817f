/**
 * Traces by OTLP over HTTP, with the SDK of OpenTelemetry, which is loaded only where the configuration wants traces. No
 * request waits for the collector: spans that it does not take, or that are too many at once, are dropped and counted.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Context,
  ROOT_CONTEXT,
  type Tracer as SdkTracer,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import manifest from '../../../../package.json' with { type: 'json' };
import { messageOf } from '../../../lib/error-message.ts';
import type { Logger } from '../../../lib/log.ts';
import { type Attributes, type Span, type SpanReference, type Tracer, within } from '../../../lib/trace.ts';
import type { TracingSettings } from '../../config/tracing.ts';

export interface Tracing extends Tracer {
  /** Sends what there is, for as long as a second. */
  stop(): Promise<void>;
}

/** Spans that wait for the collector, those under way to it included. */
const mostWaiting = 2048;
const exportMs = 5_000;
const stopMs = 1_000;
/** A collector that is just too slow fails and works in turns. */
const sayEveryMs = 60_000;
/** Attributes of ours are IDs and results. */
const spanLimits = { attributeValueLengthLimit: 200, attributeCountLimit: 16, linkCountLimit: 16 };

export function startTracing(settings: TracingSettings, log: Logger): Tracing {
  const processor = new BoundedProcessor(settings, log);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'andromeda', 'service.version': manifest.version }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(settings.sampleRatio) }),
    spanLimits,
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer('andromeda', manifest.version);
  return {
    begin(name, { kind = 'internal', parent, links = [], attributes = {} } = {}) {
      const context = parent ? contextOf(parent, true) : ROOT_CONTEXT;
      const options = {
        kind: kind === 'server' ? SpanKind.SERVER : SpanKind.INTERNAL,
        attributes: known(attributes),
        links: links.map(linkTo),
      };
      return spanOf(tracer, tracer.startSpan(name, options, context), {});
    },
    async stop() {
      await Promise.race([provider.shutdown().catch(() => {}), sleep(stopMs, undefined, { ref: false })]);
    },
  };
}

type SdkSpan = ReturnType<SdkTracer['startSpan']>;

function spanOf(tracer: SdkTracer, span: SdkSpan, shared: Span['shared']): Span {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const reference = { traceId, spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 };
  return {
    ...reference,
    shared,
    child(name, attributes = {}, links = []) {
      const options = { attributes: known(attributes), links: links.map(linkTo) };
      return spanOf(tracer, tracer.startSpan(name, options, contextOf(reference, false)), shared);
    },
    set: (attributes) => void span.setAttributes(known(attributes)),
    end(failure) {
      if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
      span.end();
    },
  };
}

function contextOf(reference: SpanReference, isRemote: boolean): Context {
  return trace.setSpanContext(ROOT_CONTEXT, { ...sdkContext(reference), isRemote });
}

function linkTo(reference: SpanReference) {
  return { context: sdkContext(reference) };
}

function sdkContext({ traceId, spanId, sampled }: SpanReference) {
  return { traceId, spanId, traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE };
}

function known(attributes: Attributes): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(attributes).filter(
      (pair): pair is [string, string | number | boolean] => pair[1] !== undefined,
    ),
  );
}

/** Sends spans in batches, and counts those that it has to drop. */
class BoundedProcessor extends BatchSpanProcessor {
  readonly #counted: CountedExporter;

  constructor(settings: TracingSettings, log: Logger) {
    const counted = new CountedExporter(settings, log);
    // Longer than the exporter's own limit, so that each batch is settled there.
    super({
      exporter: counted,
      maxQueueSize: mostWaiting,
      exportTimeoutMillis: 2 * exportMs,
      scheduledDelayMillis: 1_000,
    });
    this.#counted = counted;
  }

  override onEnd(span: ReadableSpan): void {
    if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return;
    // The batch that it begins belongs to no trace.
    if (this.#counted.admit()) within(undefined, () => super.onEnd(span));
  }
}

class CountedExporter implements SpanExporter {
  readonly #inner: OTLPTraceExporter;
  readonly #log: Logger;
  #waiting = 0;
  #isFailing = false;
  #saidAt = Number.NEGATIVE_INFINITY;
  /** Since it was last said to work. */
  #dropped = 0;

  constructor({ url, headers, ca }: TracingSettings, log: Logger) {
    this.#log = log;
    this.#inner = new OTLPTraceExporter({
      url: url.href,
      headers: { ...headers },
      timeoutMillis: exportMs,
      concurrencyLimit: 2,
      ...(ca && { httpAgentOptions: { ca, keepAlive: true } }),
    });
  }

  /** Whether there is room for one more. */
  admit(): boolean {
    if (this.#waiting >= mostWaiting) {
      this.#drop(1, 'the collector is too slow');
      return false;
    }
    this.#waiting += 1;
    return true;
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    this.#inner.export(spans, (result) => {
      this.#waiting -= spans.length;
      // 0: of @opentelemetry/core, SUCCESS.
      if (result.code === 0) this.#works();
      else this.#drop(spans.length, messageOf(result.error));
      // Always success: a failure is logged already, and the SDK would write it to stderr.
      done({ code: 0 });
    });
  }

  #works(): void {
    if (!this.#isFailing) return;
    this.#log.info('tracing.working', { dropped: this.#dropped });
    this.#isFailing = false;
    this.#dropped = 0;
  }

  #drop(spans: number, error: string): void {
    this.#dropped += spans;
    this.#log.debug('tracing.dropped', { spans });
    const now = performance.now();
    if (this.#isFailing || now - this.#saidAt < sayEveryMs) return;
    this.#isFailing = true;
    this.#saidAt = now;
    this.#log.warn('tracing.failed', { error });
  }

  forceFlush(): Promise<void> {
    return this.#inner.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#inner.shutdown();
  }
}
