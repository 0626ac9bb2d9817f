import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { DomainError, type ErrorCode } from '../../src/domain/error.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createTrustedProxies } from '../../src/lib/source-address.ts';
import { eventually } from '../support/app.ts';
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
const statuses: [ErrorCode, number, string, boolean][] = [
  ['invalid_request', 400, 'invalid_request', false],
  ['invalid_parameter', 422, 'invalid_request', false],
  ['invalid_organization', 400, 'invalid_organization', false],
  ['invalid_cluster', 400, 'invalid_cluster', false],
  ['invalid_pagination', 400, 'invalid_pagination', false],
  ['invalid_scheduler_config', 400, 'invalid_scheduler_config', false],
  ['unauthorized', 401, 'unauthorized', false],
  ['forbidden', 403, 'forbidden', false],
  ['not_found', 404, 'not_found', false],
  ['invalid_state', 409, 'invalid_state', false],
  ['idempotency_mismatch', 409, 'idempotency_mismatch', false],
  ['service_unavailable', 503, 'service_unavailable', true],
  ['integration_unavailable', 503, 'integration_unavailable', true],
  ['customer_kubernetes_login_not_configured', 503, 'customer_kubernetes_login_not_configured', false],
];

test('errors on the wire', async (t) => {
  await using api = await startFailing();

  for (const [thrown, status, code, retryable] of statuses) {
    await t.test(`${thrown} is ${status} ${code}, ${retryable ? '' : 'not '}retryable`, async () => {
      api.state.error = new DomainError(thrown, 'A sentence.');
      assert.deepEqual(await api.call('/me'), { status, body: { code, message: 'A sentence.', retryable } });
      assert.deepEqual(await api.call('/me/ssh-keys', post), {
        status,
        body: { code, error: 'A sentence.', retryable },
      });
      assert.deepEqual(await api.call('/me/ssh-keys'), {
        status,
        body: { code, message: 'A sentence.', retryable },
      });
    });
  }

  await t.test('an unexpected error is 500 without a word of it; the log has it', async () => {
    api.lines.length = 0;
    for (const error of [
      new Error('secret in /etc'),
      Object.assign(new Error('secret'), { status: 500 }),
      'secret',
    ]) {
      api.state.error = error;
      const { status, body } = await api.call('/me');
      assert.deepEqual([status, body['code'], body['retryable']], [500, 'internal', false]);
      assert.doesNotMatch(JSON.stringify(body), /secret/);
    }
    const failed = api.lines.filter((line) => line.includes('"http.failed"'));
    assert.equal(failed.length, 3);
    assert.match(failed[0] ?? '', /"path":"\/me".*secret in \/etc/);
    const { requestId } = JSON.parse(failed[0] ?? '{}');
    assert.equal(
      api.lines.filter((line) => line.includes(requestId)).length,
      2,
      'its own line, and the request’s',
    );
  });

  await t.test('a dependency that is down is logged with a cause that no caller sees', async () => {
    api.lines.length = 0;
    api.state.error = new DomainError('integration_unavailable', 'Try later.', {
      cause: new Error('ECONNREFUSED'),
    });
    assert.doesNotMatch(JSON.stringify((await api.call('/me')).body), /ECONN/);
    assert.match(api.lines.join(''), /ECONNREFUSED/);
  });

  await t.test('what a caller did wrong is logged as a request and as nothing else', async () => {
    api.lines.length = 0;
    api.state.error = new DomainError('forbidden', 'No.');
    await api.call('/me');
    await eventually(
      async () => api.lines.length,
      (count) => count === 1,
    );
    const { event, level, operation, method, path, status } = JSON.parse(api.lines[0] ?? '{}');
    assert.deepEqual(
      { event, level, operation, method, path, status },
      { event: 'http.request', level: 'info', operation: 'getMe', method: 'GET', path: '/me', status: 403 },
    );
  });

  await t.test('/readyz is 503 while the process cannot serve; /healthz still answers', async () => {
    api.state.ready = new Error('disk is gone');
    const { status, body } = await api.call('/readyz');
    assert.deepEqual([status, body['code'], body['retryable']], [503, 'service_unavailable', true]);
    assert.doesNotMatch(JSON.stringify(body), /disk/);
    assert.equal((await api.call('/healthz')).status, 200);
  });
});

test('the log names the address that a trusted proxy passes on, and the operation is handed it', async () => {
  await using api = await startFailing();
  api.state.error = new DomainError('not_found', 'nothing');
  await api.call('/me', { headers: { 'x-forwarded-for': '6.6.6.6, 192.0.2.1' } });
  const line = await eventually(
    async () => api.lines.find((one) => one.includes('"operation":"getMe"')),
    (one) => one !== undefined,
  );
  assert.equal(JSON.parse(line ?? '').address, '192.0.2.1');
  assert.equal(api.state.sourceAddress, '192.0.2.1');
});
