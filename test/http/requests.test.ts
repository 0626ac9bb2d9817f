/** What both APIs make of parameters and bodies, whatever the operation. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha, beta, physics, type Reply, startTestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';

test('what is wrong with a parameter or a body is said, and nothing of it is carried out', async () => {
  await using service = await startTestApp({
    lab: { ...physics, users: [{ email: 'root@physics.example', staff: ['staff.operate', 'staff.audit'] }] },
  });
  const org = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const configuration = `/clusters/${alpha}/scheduler-configuration?businessOrgId=${org}`;
  const put = (body: unknown, headers: Record<string, string> = {}) =>
    service.platform(configuration, { as: 'ada', method: 'PUT', body, headers });
  const stored = async () => (await service.platform(configuration, { as: 'ada' })).body;
  const wrong = (reply: Reply, status: number, message = /./) =>
    refused(reply, status, 'invalid_request', message);
  const audit = (query: string) => service.business(`/operator/audit?${query}`, { as: 'root' });

  // An integer parameter is plain digits, with a minus or without: 422.
  const page = (limit: string) =>
    service.platform(`/clusters?businessOrgId=${org}&limit=${limit}`, { as: 'ada' });
  const none = '0x10 1e1 %201 1%20 %2B5 5%0A 1.0 1_0 ٣ true 0 -1 201'.split(' ');
  for (const text of [...none, '']) {
    wrong(await page(text), 422);
  }
  wrong(await page(`1&limit=2`), 422);
  for (const text of ['1', '007', '200']) assert.equal((await page(text)).status, 200, text);
  assert.equal((await page('1')).body.items.length, 1);
  assert.equal((await audit('after=1')).body.entries[0].seq, 2);
  for (const text of ['0x1', '1e0', '9'.repeat(400)]) wrong(await audit(`after=${text}`), 422);

  // A date that does not exist is 422, in a parameter as in a body.
  for (const time of ['2030-13-45T99:99:99Z', '2030-02-30T00:00:00Z', '2016-12-31T23:59:60Z']) {
    wrong(await audit(`from=${time}`), 422);
    wrong(await audit(`to=${time}`), 422);
    const grant = { cluster_id: alpha, email: 'eve@elsewhere.example', relation: 'kubernetes.viewer' };
    const body = { ...grant, expires_at: time };
    wrong(await service.write('/operator/grants', { as: 'root', body }), 422);
  }
  assert.equal((await audit('from=2030-02-28T00:00:00Z&to=2032-02-29T00:00:00%2B01:00')).status, 200);

  // An address that cannot be decoded is 401 for strangers, 400 for people.
  wrong(await service.business('/organizations/%zz', { as: 'ada' }), 400);
  for (const path of ['/clusters/%zz', '/clusters/%E2%82', `/clusters/%zz/options?businessOrgId=${org}`]) {
    refused(await service.platform(path), 401, 'unauthorized');
    wrong(await service.platform(path, { as: 'ada' }), 400);
  }

  // Where a body is required, none is 400, and 422 for a configuration.
  for (const call of [
    {},
    { headers: { 'content-type': 'application/json' } },
    { body: '', headers: { 'content-encoding': 'identity' } },
  ]) {
    wrong(await service.platform(configuration, { as: 'ada', method: 'PUT', ...call }), 422);
    wrong(await service.write('/me/ssh-keys', { as: 'ada', ...call }), 400);
    wrong(await service.write('/me/login-preferences', { as: 'ada', method: 'PUT', ...call }), 400);
  }
  wrong(await put('x', { 'content-type': 'text/plain' }), 400);

  // A body that is not UTF-8, or has half a character, is 400.
  assert.equal((await put({ slurmExtraConfig: 'whole' })).status, 200);
  const token = await service.issuer.token('ada');
  const url = (await service.platform('/.well-known/oauth-protected-resource')).body.resource;
  const send = async (body: Uint8Array<ArrayBuffer>, type = 'application/json') => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': type };
    const response = await fetch(url + configuration, { method: 'PUT', headers, body });
    return { status: response.status, body: await response.json(), headers: response.headers };
  };
  const bytes = (middle: number[]) =>
    Uint8Array.from([...Buffer.from('{"slurmExtraConfig":"'), ...middle, ...Buffer.from('"}')]);
  for (const middle of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0xaf]]) {
    wrong(await send(bytes(middle)), 400);
  }
  for (const half of ['\\ud800', '\\uDFFF', 'a\\uDBFFb', '\\udc00\\ud800', '\\\\\\ud800']) {
    wrong(await put(`{"slurmExtraConfig":"${half}"}`), 400);
    wrong(await put(`{"prolog":{"${half}":"#!"}}`), 400);
  }
  wrong(await send(Uint8Array.from(Buffer.from('{}', 'utf16le')), 'application/json; charset=utf-16'), 400);
  assert.deepEqual(await stored(), { slurmExtraConfig: 'whole' });

  for (const [text, read] of [
    ['\\ud83d\\ude00', '😀'],
    ['\\uD83D\\uDE00', '😀'],
    ['\\\\ud800', '\\ud800'],
    ['😀é', '😀é'],
  ]) {
    const reply = await put(`{"slurmExtraConfig":"${text}"}`);
    assert.deepEqual([reply.status, reply.body.slurmExtraConfig], [200, read]);
  }

  // The last of many query parameters is read as the first one is.
  const many = 'kind=kubernetes_cluster&'.repeat(1_200);
  const reply = await service.business(`/me/resource-grants?${many}wrong=1`, { as: 'ada' });
  wrong(reply, 422, /The query parameter wrong is not known/);

  // Other operations take bodies of up to 1 MiB.
  const body = JSON.stringify({ public_key: 'x'.repeat(2 ** 20) });
  wrong(await service.write('/me/ssh-keys', { as: 'ada', body }), 400, /1 MiB/);

  // A boolean parameter is true or false: 422.
  const release = (abandon: string) =>
    service.write(`/operator/clusters/${beta}/release?abandon=${abandon}`, { as: 'root' });
  for (const text of ['yes', '1', 'TRUE', 'true&abandon=true']) wrong(await release(text), 422);
  assert.equal((await release('true')).status, 200);
  assert.equal((await release('false')).status, 200);
});
