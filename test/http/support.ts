import type { RequestListener } from 'node:http';
import { createApi } from '../../src/api/http/api.ts';
import { loadDocument } from '../../src/api/http/document.ts';
import { listen } from '../../src/api/http/listen.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createTrustedProxies } from '../../src/lib/source-address.ts';

/** The Business API with other operations behind it. */
export const createBusinessApi = (more: Partial<Parameters<typeof createApi>[0]>) =>
  createApi({
    name: 'business',
    document: loadDocument('business'),
    sibling: { title: 'Platform', url: '' },
    operations: {},
    deps: {},
    authenticate: async () => 'user_1',
    checkReady: async () => {},
    proxies: createTrustedProxies([]),
    log: createLogger('silent'),
    now: () => 0,
    ...more,
  });

/** A listener of this machine alone. */
export const listenHere = (handler: RequestListener, more: Partial<Parameters<typeof listen>[1]> = {}) =>
  listen(handler, { name: 'test', host: '127.0.0.1', port: 0, ...more });
