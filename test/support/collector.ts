/** A collector of traces: takes OTLP over HTTP as JSON (opentelemetry-proto, `ExportTraceServiceRequest`), and nothing that is not. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CollectedSpan {
  name: string;
  /** 1: internal, 2: server. */
  kind: number;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  attributes: Record<string, unknown>;
  links: { traceId: string; spanId: string }[];
  failed: boolean;
}

export async function startCollector(port = 0) {
  const state = {
    spans: [] as CollectedSpan[],
    headers: [] as IncomingHttpHeaders[],
    texts: [] as string[],
    faults: [] as unknown[],
  };
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const part of request.setEncoding('utf8')) text += part;
    try {
      assert.equal(`${request.method} ${request.url}`, 'POST /v1/traces');
      assert.equal(request.headers['content-type'], 'application/json');
      state.spans.push(...parseRequest(JSON.parse(text)));
      state.headers.push(request.headers);
      state.texts.push(text);
      response.setHeader('Content-Type', 'application/json').end('{}');
    } catch (error) {
      state.faults.push(error);
      response.writeHead(400).end();
    }
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const at = (server.address() as AddressInfo).port;
  return Object.assign(state, {
    port: at,
    url: `http://127.0.0.1:${at}/v1/traces`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  });
}

// biome-ignore lint/suspicious/noExplicitAny: it is what is being checked
function parseRequest(body: any): CollectedSpan[] {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  return body.resourceSpans.flatMap(({ resource, scopeSpans }: any) => {
    assert.equal(attributesOf(resource.attributes)['service.name'], 'andromeda');
    // biome-ignore lint/suspicious/noExplicitAny: as above
    return scopeSpans.flatMap(({ spans }: any) => spans.map(parseSpan));
  });
}

// biome-ignore lint/suspicious/noExplicitAny: as above
function parseSpan(span: any): CollectedSpan {
  const { name, kind, traceId, spanId, parentSpanId = '', status = {}, links = [] } = span;
  assert.match(traceId, /^[0-9a-f]{32}$/);
  assert.match(spanId, /^[0-9a-f]{16}$/);
  assert.match(parentSpanId, /^([0-9a-f]{16})?$/);
  assert.ok(
    BigInt(span.startTimeUnixNano) > 0n && BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano),
  );
  return {
    name,
    kind,
    traceId,
    spanId,
    parentSpanId,
    attributes: attributesOf(span.attributes ?? []),
    // biome-ignore lint/suspicious/noExplicitAny: as above
    links: links.map((link: any) => ({ traceId: link.traceId, spanId: link.spanId })),
    failed: status.code === 2,
  };
}

// biome-ignore lint/suspicious/noExplicitAny: as above
function attributesOf(attributes: { key: string; value: any }[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ??
        value.boolValue ??
        (value.intValue === undefined ? value.doubleValue : Number(value.intValue)),
    ]),
  );
}
