/** Several servers behind the same names: the authority may ask any of them what another is to answer. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createLogger } from '../../src/lib/log.ts';
import { type AnsweredChallenge, createAcme } from '../../src/service/certificates/index.ts';
import { becomes } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';

test('a server answers the question that another one is asked about a name that both have', async () => {
  using directory = temporaryDirectory();
  let hear: (challenge: AnsweredChallenge) => void = () => {};
  const acme = createAcme({
    directory: 'https://127.0.0.1:1/directory',
    email: undefined,
    hosts: ['a.example'],
    authority: undefined,
    externalAccount: undefined,
    dataDir: directory.path,
    origins: ['https://a.example'],
    log: createLogger('silent'),
    now: Date.now,
    others: {
      announce: async () => {},
      hear(listener) {
        hear = listener;
        return () => {};
      },
      certificate: { find: async () => undefined, ordering: () => undefined },
    },
  });
  const server = createServer(acme.handler);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  try {
    const { port } = server.address() as AddressInfo;
    const ask = async (token: string) => {
      const path = `/.well-known/acme-challenge/${token}`;
      const response = await fetch(`http://127.0.0.1:${port}${path}`);
      return `${response.status} ${await response.text()}`;
    };
    hear({ token: 'ours', host: 'a.example', keyAuthorization: 'ours.thumbprint' });
    hear({ token: 'other', host: 'b.example', keyAuthorization: 'other.thumbprint' });
    await becomes(() => ask('ours'), '200 ours.thumbprint');
    assert.match(await ask('other'), /^404 /, 'a name that this server does not have');
  } finally {
    acme.stop();
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
});
