/** /docs in a real browser: read without a script, signed in to, and calls tried. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { hashPassword } from '../../src/api/identity/password.ts';
import { setPassword } from '../../src/store/people/identities.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { physics, startTestApp, type TestApp } from '../support/app.ts';
import { type Browser, noBrowser, openBrowser } from '../support/browser.ts';
import { limit } from '../support/limit.ts';
import { freePorts } from '../support/ports.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

const password = 'correct horse battery staple';
const hostile = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
const lab = {
  ...physics,
  users: [...(physics.users ?? []), { email: 'ada@physics.example', name: hostile }],
  clusters: [],
};
const desktop = { width: 1000, height: 800 };

let browser: Browser;
before(async () => {
  if (!noBrowser) browser = await openBrowser();
});
after(() => browser?.[Symbol.asyncDispose]());

/** The service with the embedded issuer, where Ada has a password. */
async function startEmbedded(): Promise<TestApp> {
  const [port] = await freePorts(1);
  const service = await startTestApp({
    lab,
    config: { identity: { embedded: { listen: `127.0.0.1:${port}` } } },
  });
  const { store } = service.app;
  const user = await findPersonByEmail(store.read, 'ada@physics.example');
  assert.ok(user);
  const hash = await hashPassword(password);
  await store.write((tx) => setPassword({ ...tx, now: Date.parse('2020-01-01') }, { userId: user.id, hash }));
  return service;
}

/** Everything that the browser complains about, and every address it asks. */
function watch(page: Page) {
  const complaints: string[] = [];
  const asked: string[] = [];
  page.on('console', (message) => {
    if (message.type() !== 'log') complaints.push(`${message.text()} ${message.location().url}`.trim());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => asked.push(request.url()));
  return { complaints, asked };
}

/** Opens an operation and fills in its form; what is not given stays as the page filled it in. */
async function openForm(page: Page, call: string, fields: Record<string, string> = {}): Promise<Locator> {
  const form = page.locator(`form[aria-label="Try ${call}"]`);
  const section = page.locator('details', { has: form });
  if (!(await form.isVisible())) await section.locator('summary').click();
  for (const [name, value] of Object.entries(fields)) await form.getByLabel(name).fill(value);
  return form;
}

/** Sends a form and waits for the reply: its status and its text. */
async function send(form: Locator): Promise<{ status: number; text: string }> {
  await form.getByRole('button', { name: 'Send' }).click();
  await form.locator('.status', { hasText: /^\d{3} / }).waitFor();
  await form.and(form.page().locator('form:not([aria-busy])')).waitFor();
  const status = Number((await form.locator('.status').innerText()).slice(0, 3));
  return { status, text: await form.locator('pre.reply').innerText() };
}

/** Signs in and waits for the page to notice; without a password where the browser is signed in already. */
async function signIn(page: Page, typed?: string): Promise<void> {
  await page.getByRole('button', { name: 'Sign in' }).click();
  const link = page.getByRole('link', { name: 'Open the sign-in page' });
  await link.waitFor();
  const code = await page.locator('#code').innerText();
  assert.match(code, /^[A-Z]{4}-[A-Z]{4}$/);
  const [approval] = await Promise.all([page.context().waitForEvent('page'), link.click()]);
  if (typed !== undefined) {
    await approval.getByLabel('Email').fill('ada@physics.example');
    await approval.getByLabel('Password').fill(typed);
    await approval.getByRole('button', { name: 'Sign in' }).click();
  }
  await approval.getByRole('heading', { name: 'Approve this sign-in?' }).waitFor();
  const text = await approval.locator('main').innerText();
  assert.ok(text.includes(code), text);
  assert.match(text, /Andromeda \/docs page/);
  await approval.getByRole('button', { name: 'Approve' }).click();
  await approval.getByText('You can close this window').waitFor();
  await approval.close();
  await page.getByText('Signed in as ada@physics.example until').waitFor();
}

test('a signed-in person tries calls on /docs', { skip: noBrowser }, async (t) => {
  await using service = await startEmbedded();
  await browser.withPage(
    async (page) => {
      const { complaints, asked } = watch(page);
      await page.goto(`${service.businessUrl}/docs`);

      await t.test('signing in is the device flow, in the browser', async () => {
        await signIn(page, password);
        assert.ok(await page.getByRole('button', { name: 'Sign out' }).isVisible());
      });

      await t.test(
        'a call shows its status, its headers and its reply, and hostile text as text',
        async () => {
          const form = await openForm(page, 'GET /me');
          const { status, text } = await send(form);
          assert.equal(status, 200);
          assert.equal(JSON.parse(text).user.display_name, hostile);
          assert.match(text, /^\{\n {2}"user": \{\n/);
          assert.match(await form.locator('pre.headers').innerText(), /content-type: application\/json/);
          assert.equal(await page.evaluate('window.hacked'), undefined);
          assert.equal(await page.locator('img').count(), 0);
        },
      );

      await t.test('a write carries its two headers and its body; the same again is a replay', async () => {
        const key = newPublicKey();
        const form = await openForm(page, 'POST /me/ssh-keys', {
          'Audit-Reason': 'новый ноутбук – neu, für Ada',
          Body: JSON.stringify({ public_key: key }),
        });
        const keyField = form.getByLabel('Idempotency-Key');
        const idempotencyKey = await keyField.inputValue();
        assert.match(idempotencyKey, /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
        const first = await send(form);
        assert.equal(first.status, 201, first.text);
        assert.ok(key.startsWith(JSON.parse(first.text).ssh_key.public_material));
        assert.equal((await send(form)).status, 200);
        assert.equal(await keyField.inputValue(), idempotencyKey);
        await form.getByLabel('Audit-Reason').fill('another');
        assert.notEqual(await keyField.inputValue(), idempotencyKey, 'another request has another key');
        const audit = await service.app.store.read.selectFrom('audit_entries').selectAll().execute();
        assert.ok(JSON.stringify(audit).includes('новый ноутбук – neu, für Ada'));
      });

      await t.test(
        'IDs go into the path whatever they are, and query parameters only when given',
        async () => {
          const me = await openForm(page, 'GET /me');
          const { memberships } = JSON.parse(await me.locator('pre.reply').innerText());
          const members = await openForm(page, 'GET /organizations/{orgID}/members', {
            orgID: memberships[0].org_id,
          });
          assert.equal((await send(members)).status, 200);
          // Typed once: the other forms have it as well.
          const organization = await openForm(page, 'GET /organizations/{orgID}');
          assert.equal(await organization.getByLabel('orgID').inputValue(), memberships[0].org_id);
          await organization.getByLabel('orgID').fill('../me?x=#%zz');
          assert.equal((await send(organization)).status, 404);
          const sent = asked.at(-1) ?? '';
          assert.equal(sent, `${service.businessUrl}/organizations/${encodeURIComponent('../me?x=#%zz')}`);
          const grants = await openForm(page, 'GET /me/resource-grants');
          assert.equal((await send(grants)).status, 200);
          assert.equal(asked.at(-1), `${service.businessUrl}/me/resource-grants`);
          await openForm(page, 'GET /me/resource-grants', { kind: 'kubernetes_cluster' });
          await send(grants);
          assert.equal(asked.at(-1), `${service.businessUrl}/me/resource-grants?kind=kubernetes_cluster`);
        },
      );

      await t.test('what operators do is there, and refused to who is none', async () => {
        const form = await openForm(page, 'GET /operator/people', { limit: '5' });
        const { status, text } = await send(form);
        assert.deepEqual([status, JSON.parse(text).code], [403, 'forbidden']);
      });

      await t.test('the token is in no storage and in no address', async () => {
        const kept = await page.evaluate(
          '(async () => [localStorage.length, sessionStorage.length, document.cookie, (await indexedDB.databases()).length, (await caches.keys()).length])()',
        );
        assert.deepEqual(kept, [0, 0, '', 0, 0]);
        assert.equal(page.url(), `${service.businessUrl}/docs`);
        for (const address of asked) assert.doesNotMatch(address, /eyJ|token=/, address);
        const cookies = await page.context().cookies();
        assert.doesNotMatch(JSON.stringify(cookies), /"value":"eyJ[\w-]+\.[\w-]+\.[\w-]+"/);
        assert.doesNotMatch(await page.content(), /eyJ[\w-]{20,}/);
      });

      await t.test('the page asks its own API and the issuer, and no other server', async () => {
        const origins = new Set(asked.map((address) => new URL(address).origin));
        assert.deepEqual([...origins].sort(), [service.businessUrl, service.app.issuerUrl].sort());
      });

      await t.test('the browser complains of nothing but the refusals that were asked for', () => {
        // 400 is an issuer's answer to a terminal that asks before the person has approved (RFC 8628, 3.5).
        const refusals = /the server responded with a status of (40[34] |400 .*\/token$)/;
        assert.deepEqual(
          complaints.filter((line) => !refusals.test(line)),
          [],
        );
      });

      await t.test('signed out, calls go without a token', async () => {
        await page.getByRole('button', { name: 'Sign out' }).click();
        const form = await openForm(page, 'GET /me');
        assert.equal((await send(form)).status, 401);
        assert.match(await form.locator('pre.headers').innerText(), /www-authenticate: Bearer/);
        assert.match(await form.locator('.status').innerText(), /not signed in/);
      });

      await t.test('the Platform API has the same page, for its own calls', async () => {
        await page.getByRole('link', { name: 'Platform API' }).click();
        await page.getByRole('heading', { name: 'Andromeda Platform API' }).waitFor();
        await signIn(page);
        const organization = await service.app.store.read
          .selectFrom('organizations')
          .select('id')
          .where('slug', '=', 'physics')
          .executeTakeFirstOrThrow();
        const form = await openForm(page, 'GET /clusters', { businessOrgId: organization.id });
        const { status, text } = await send(form);
        assert.deepEqual([status, JSON.parse(text)], [200, { items: [] }]);
      });
    },
    desktop,
    true,
  );
});

test('/docs with an issuer that lets no page sign in says so, and takes a token', {
  skip: noBrowser,
}, async () => {
  await using service = await startTestApp({ lab });
  await browser.withPage(
    async (page) => {
      await page.goto(`${service.businessUrl}/docs`);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('does not let this page sign you in. Use an access token instead.').waitFor();
      const field = page.getByLabel('Access token');
      await field.fill(await service.issuer.token('ada', {}, -5));
      await page.getByRole('button', { name: 'Use it' }).click();
      await page.getByText('This access token has expired.').waitFor();
      await field.fill(await service.issuer.token('ada'));
      await page.keyboard.press('Enter');
      await page.getByText('Signed in as ada@physics.example').waitFor();
      assert.equal(await field.inputValue(), '');
      const { status, text } = await send(await openForm(page, 'GET /me'));
      assert.equal(status, 200);
      assert.equal(JSON.parse(text).user.primary_email, 'ada@physics.example');

      await page.goto(`${service.businessUrl.replace('127.0.0.1', 'localhost')}/docs`);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText(`this API is at home: open ${service.businessUrl}/docs`).waitFor();
    },
    desktop,
    true,
  );
});

test('/docs polls at the pace that the issuer says, and stops when it says so', {
  skip: noBrowser,
}, async () => {
  await using issuer = await startScriptedIssuer();
  await using service = await startTestApp({ lab, identity: { issuer: issuer.url } });
  await browser.withPage(
    async (page) => {
      const start = Date.now();
      await page.clock.install({ time: start });
      await page.goto(`${service.businessUrl}/docs`);
      // From here on, time passes only as told.
      await page.clock.pauseAt(start + 3_600_000);
      const begin = async (...answers: object[]) => {
        issuer.answers = answers;
        issuer.polls = 0;
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByText('ABCD-EFGH').waitFor();
      };
      /** Lets seconds pass, and waits for the poll that they bring, where they bring one. */
      const pass = async (seconds: number, polls: number) => {
        await page.clock.runFor(seconds * 1000);
        const deadline = performance.now() + limit(30_000);
        while (issuer.polls < polls && performance.now() < deadline)
          await new Promise((done) => setTimeout(done, 10));
        await new Promise((done) => setTimeout(done, 50));
        assert.equal(issuer.polls, polls);
      };
      await begin({ error: 'authorization_pending' }, { error: 'slow_down' }, { error: 'access_denied' });
      await pass(2.9, 0);
      await pass(0.2, 1);
      await pass(2.8, 1);
      await pass(0.3, 2);
      await pass(7.8, 2);
      await pass(0.4, 3);
      await page.getByText('The sign-in was denied.').waitFor();
      await page.clock.runFor(60_000);
      assert.equal(issuer.polls, 3);

      await begin({ error: 'authorization_pending' });
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.clock.runFor(60_000);
      assert.equal(issuer.polls, 0);
      assert.ok(await page.getByRole('button', { name: 'Sign in' }).isVisible());

      await begin({ access_token: 'opaque', token_type: 'Bearer', expires_in: 30 });
      await pass(3.1, 1);
      await page.getByText(/^Signed in until/).waitFor();
      await page.clock.runFor(31_000);
      await page.getByText('The sign-in has ended.').waitFor();
    },
    desktop,
    true,
  );
});

test('/docs without JavaScript shows everything that there is to read', { skip: noBrowser }, async () => {
  await using service = await startTestApp({ lab });
  const document = (await service.business('/openapi.json')).body;
  await browser.withPage(
    async (page) => {
      const { complaints } = watch(page);
      await page.goto(`${service.businessUrl}/docs`);
      const text = await page.locator('main').innerText();
      for (const [path, methods] of Object.entries<Record<string, { summary: string }>>(document.paths)) {
        assert.ok(text.includes(path), path);
        for (const { summary } of Object.values(methods)) assert.ok(text.includes(summary), summary);
      }
      await page.locator('summary', { hasText: 'Register an SSH key' }).first().click();
      assert.ok(await page.getByText('One Ed25519 public key in OpenSSH format').first().isVisible());
      assert.equal(await page.getByRole('button').count(), 0, 'nothing that would do nothing');
      assert.deepEqual(complaints, []);
    },
    { width: 380, height: 800 },
  );
});

test('/docs fits a narrow window, and every field has its label', { skip: noBrowser }, async () => {
  await using service = await startTestApp({ lab });
  await browser.withPage(
    async (page) => {
      for (const api of [service.businessUrl, (await discovery(service)).resource]) {
        const { complaints } = watch(page);
        await page.goto(`${api}/docs`);
        await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
        const width = await page.evaluate('document.documentElement.scrollWidth');
        assert.equal(width, 380);
        const unlabelled = await page.evaluate(
          "[...document.querySelectorAll('input, select, textarea')].filter((field) => field.labels.length !== 1).map(({ id }) => id)",
        );
        assert.deepEqual(unlabelled, []);
        const bodies = await page.evaluate(
          "[...document.querySelectorAll('textarea')].map(({ value }) => typeof JSON.parse(value))",
        );
        assert.ok((bodies as string[]).every((kind) => kind === 'object'));
        assert.deepEqual(complaints, []);
      }
    },
    { width: 380, height: 800 },
    true,
  );
});

async function discovery(service: TestApp) {
  return (await service.platform('/.well-known/oauth-protected-resource')).body;
}

/** An issuer that lets pages sign in and answers polls as told, the last answer again and again. */
async function startScriptedIssuer() {
  const server = createServer((request, response) => {
    const { url } = issuer;
    const bodies: Record<string, () => object> = {
      '/.well-known/openid-configuration': () => ({
        issuer: url,
        jwks_uri: `${url}/jwks`,
        device_authorization_endpoint: `${url}/start`,
        token_endpoint: `${url}/poll`,
      }),
      '/start': () => ({
        device_code: 'x',
        user_code: 'ABCD-EFGH',
        verification_uri: `${url}/device`,
        expires_in: 600,
        interval: 3,
      }),
      '/poll': () => issuer.answers[Math.min(issuer.polls++, issuer.answers.length - 1)] ?? {},
    };
    const body = bodies[request.url ?? '']?.() ?? {};
    response.writeHead('error' in body ? 400 : 200, {
      'content-type': 'application/json',
      'access-control-allow-origin': request.headers.origin ?? '',
    });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const issuer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answers: [] as object[],
    polls: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
  return issuer;
}
