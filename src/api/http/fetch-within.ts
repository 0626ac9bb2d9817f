/** Calls a request listener of this process through the interface of `fetch`: no socket, no address, no TLS. */
import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** A `fetch` for any address, answered by `handler`. Bodies are text. */
export function fetchWithin(handler: RequestListener): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const { pathname, search, host } = new URL(request.url);
    const incoming = new IncomingMessage(new Socket());
    incoming.method = request.method;
    incoming.url = pathname + search;
    incoming.headers = { ...Object.fromEntries(request.headers), host };
    const body = Buffer.from(await request.arrayBuffer());
    if (body.length > 0) incoming.headers['content-length'] = String(body.length);
    incoming.push(body);
    incoming.push(null);
    incoming.complete = true;
    return new Promise((resolve, reject) => {
      const response = new CapturedResponse(incoming);
      response.once('finish', () => resolve(response.captured()));
      response.once('close', () => reject(new TypeError('the call was cut off')));
      handler(incoming, response);
    });
  };
}

class CapturedResponse extends ServerResponse {
  readonly #parts: Buffer[] = [];

  override writeHead(status: number, ...rest: unknown[]): this {
    this.statusCode = status;
    const headers = rest.find((one) => typeof one === 'object' && one !== null) ?? {};
    for (const [name, value] of Object.entries(headers)) this.setHeader(name, value);
    return this;
  }

  override write(part: unknown): boolean {
    this.#keep(part);
    return true;
  }

  override end(part?: unknown): this {
    this.#keep(part);
    this.finished = true;
    this.emit('finish');
    return this;
  }

  #keep(part: unknown): void {
    if (typeof part === 'string') this.#parts.push(Buffer.from(part));
    else if (part instanceof Uint8Array) this.#parts.push(Buffer.from(part));
  }

  captured(): Response {
    const headers = new Headers();
    for (const [name, value] of Object.entries(this.getHeaders())) headers.set(name, String(value));
    const isEmpty = [204, 304].includes(this.statusCode);
    return new Response(isEmpty ? null : Buffer.concat(this.#parts), { status: this.statusCode, headers });
  }
}
