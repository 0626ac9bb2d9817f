import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ada, createBrowser, credentials, type Harness, startDevice, startHarness } from './harness.ts';

const via = (client: string) => ({ 'x-forwarded-for': client });

async function attempt(harness: Harness, client: string, password: string) {
  const device = await startDevice(harness.url);
  const browser = createBrowser(harness.url);
  const page = await browser.visit(device.verification_uri_complete, undefined, via(client));
  return browser.submit(page, '/device/sign-in', { email: ada.email, password }, via(client));
}

test('behind a trusted proxy wrong passwords hold back the browser that sent them, and no other', async () => {
  await using harness = await startHarness({ proxies: ['127.0.0.1'], now: () => 1_800_000_000_000 });
  for (let i = 0; i < 5; i++) assert.equal((await attempt(harness, '192.0.2.66', 'wrong')).status, 403);
  assert.equal((await attempt(harness, '192.0.2.66', ada.password)).status, 429);
  // What stands further left is the client's own invention.
  assert.equal((await attempt(harness, '198.51.100.1, 192.0.2.66', ada.password)).status, 429);
  assert.equal((await attempt(harness, '192.0.2.1', ada.password)).status, 303);
  assert.ok(harness.log.some((line) => line.includes('"address":"192.0.2.66"')));
});

test('from anyone but a trusted proxy the header chooses no address', async () => {
  await using harness = await startHarness({ proxies: ['127.0.0.2'], now: () => 1_800_000_000_000 });
  for (let i = 0; i < 5; i++) assert.equal((await attempt(harness, `192.0.2.${i}`, 'wrong')).status, 403);
  assert.equal((await attempt(harness, '192.0.2.9', 'wrong')).status, 429);
});

test('the approval page names the address that the proxy passes on', async () => {
  await using harness = await startHarness({ proxies: ['127.0.0.1'] });
  const asked = await fetch(`${harness.url}/device/auth`, {
    method: 'POST',
    headers: via('2001:db8::7'),
    body: new URLSearchParams({ client_id: 'andromeda-cli', scope: 'openid' }),
  });
  const device = (await asked.json()) as { verification_uri_complete: string };
  const browser = createBrowser(harness.url);
  const page = await browser.visit(device.verification_uri_complete);
  await browser.submit(page, '/device/sign-in', credentials);
  const approval = await browser.visit(device.verification_uri_complete);
  assert.match(approval.text, /<dt>Address<\/dt><dd>2001:db8::7<\/dd>/);
});
