/** The last answers of a server that stops: each says that its connection ends with it (RFC 9112, 9.6). */
import type { RequestListener, ServerResponse } from 'node:http';

export interface Leaving {
  handler: RequestListener;
  /** From now on, also what is under way says so, unless its answer has begun. */
  begin(): void;
}

export function createLeaving(handler: RequestListener): Leaving {
  const underWay = new Set<ServerResponse>();
  let hasBegun = false;
  return {
    handler(request, response) {
      if (hasBegun) endWith(response);
      underWay.add(response);
      response.once('close', () => underWay.delete(response));
      handler(request, response);
    },
    begin() {
      hasBegun = true;
      for (const response of underWay) endWith(response);
    },
  };
}

function endWith(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}
