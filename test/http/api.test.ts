import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { DomainError, type ErrorCode } from '../../src/domain/error.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createTrustedProxies } from '../../src/lib/source-address.ts';
import { becomes, eventually } from '../support/app.ts';
import { createBusinessApi } from './support.ts';

/** The Business API with operations that fail as told. */
async function startFailing() {
  const lines: string[] = [];
  const state: { error: unknown; reply: unknown; ready: Error | undefined; sourceAddress?: string } = {
    error: undefined,
    reply: undefined,
    ready: undefined,
  };
  const fail = async (_deps: unknown, { caller }: { caller: { sourceAddress: string } }) => {
    state.sourceAddress = caller.sourceAddress;
    if (state.error !== undefined) throw state.error;
    return state.reply;
  };
  const app = createBusinessApi({
    operations: { getMe: fail, listSshKeys: fail, registerSshKey: fail, revokeSshKey: fail },
    checkReady: async () => {
      if (state.ready) throw state.ready;
    },
    proxies: createTrustedProxies(['127.0.0.1']),
    log: createLogger('debug', (line) => lines.push(line)),
  });
  const server = app.listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    state,
    lines,
    call: async (path: string, init: RequestInit = {}) => {
      const response = await fetch(base + path, init);
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    },
    [Symbol.asyncDispose]: () => new Promise<void>((done) => void server.close(() => done())),
  };
}

const post = {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'Idempotency-Key': 'k', 'Audit-Reason': 'r' },
  body: '{"public_key":"x"}',
};
const statuses: [number, ...ErrorCode[]][] = [
  [400, 'invalid_request', 'invalid_organization', 'invalid_cluster', 'invalid_pagination'],
  [400, 'invalid_scheduler_config'],
  [401, 'unauthorized'],
  [403, 'forbidden'],
  [404, 'not_found'],
  [409, 'invalid_state', 'idempotency_mismatch'],
  [422, 'invalid_parameter'],
  [503, 'service_unavailable', 'integration_unavailable', 'customer_kubernetes_login_not_configured'],
];

test('an error has its status and code, and says whether to try again', async () => {
  await using api = await startFailing();
  for (const [status, ...thrown] of statuses) {
    for (const one of thrown) {
      api.state.error = new DomainError(one, 'A sentence.');
      const code = one === 'invalid_parameter' ? 'invalid_request' : one;
      const retryable = one === 'service_unavailable' || one === 'integration_unavailable';
      const said = { status, body: { code, message: 'A sentence.', retryable } };
      assert.deepEqual(await api.call('/me'), said);
      assert.deepEqual(await api.call('/me/ssh-keys'), said);
      const ofWrite = { status, body: { code, error: 'A sentence.', retryable } };
      assert.deepEqual(await api.call('/me/ssh-keys', post), ofWrite);
    }
  }
});

test('what no caller reads of an error is in the log', async () => {
  await using api = await startFailing();
  const unexpected = Object.assign(new Error('secret'), { status: 500 });
  for (const error of [new Error('secret in /etc'), unexpected, 'secret']) {
    api.state.error = error;
    const { status, body } = await api.call('/me');
    assert.deepEqual([status, body['code'], body['retryable']], [500, 'internal', false]);
    assert.doesNotMatch(JSON.stringify(body), /secret/);
  }
  const failed = api.lines.filter((line) => line.includes('"http.failed"'));
  assert.equal(failed.length, 3);
  assert.match(failed[0] ?? '', /"path":"\/me".*secret in \/etc/);
  const { requestId } = JSON.parse(failed[0] ?? '{}');
  const withId = api.lines.filter((line) => line.includes(requestId));
  assert.equal(withId.length, 2, 'its own line, and the request’s');

  const cause = new Error('ECONNREFUSED');
  api.state.error = new DomainError('integration_unavailable', 'Try later.', { cause });
  assert.doesNotMatch(JSON.stringify((await api.call('/me')).body), /ECONN/);
  assert.match(api.lines.join(''), /ECONNREFUSED/);
  await becomes(() => api.lines.filter((line) => line.includes('"http.request"')).length, 4);

  // What a caller did wrong is logged as a request and as nothing else.
  api.lines.length = 0;
  api.state.error = new DomainError('forbidden', 'No.');
  await api.call('/me');
  await becomes(() => api.lines.length, 1);
  const { event, level, operation, method, path, status } = JSON.parse(api.lines[0] ?? '{}');
  assert.deepEqual(
    [event, level, operation, method, path, status],
    ['http.request', 'info', 'getMe', 'GET', '/me', 403],
  );
});

test('/readyz is 503 while the process cannot serve; /healthz still answers', async () => {
  await using api = await startFailing();
  api.state.ready = new Error('disk is gone');
  const { status, body } = await api.call('/readyz');
  assert.deepEqual([status, body['code'], body['retryable']], [503, 'service_unavailable', true]);
  assert.doesNotMatch(JSON.stringify(body), /disk/);
  assert.equal((await api.call('/healthz')).status, 200);
});

test('the log names the address that a trusted proxy passes on, and the operation is handed it', async () => {
  await using api = await startFailing();
  api.state.error = new DomainError('not_found', 'nothing');
  await api.call('/me', { headers: { 'x-forwarded-for': '6.6.6.6, 192.0.2.1' } });
  const find = async () => api.lines.find((one) => one.includes('"operation":"getMe"'));
  const line = await eventually(find, Boolean);
  assert.equal(JSON.parse(line ?? '').address, '192.0.2.1');
  assert.equal(api.state.sourceAddress, '192.0.2.1');
});
