import { createServer, type IncomingMessage } from 'node:http';
import { listening } from './ports.ts';

/** An HTTP server that answers as it is told, JSON unless a header says otherwise. */
export async function startAnswers(
  answer: (
    request: IncomingMessage,
    url: string,
  ) => readonly [status: number, body: string, headers?: Record<string, string>],
): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((request, response) => {
    const [status, body, headers] = answer(request, url);
    response.statusCode = status;
    response.setHeaders(new Map(Object.entries({ 'content-type': 'application/json', ...headers })));
    response.end(body);
  });
  const url = `http://127.0.0.1:${await listening(server)}`;
  return {
    url,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
