/** Servers of two versions behind one address: a page of one has its files also where the other is asked for them. */
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { brotliCompressSync, constants } from 'node:zlib';
import { sendError, setPageHeaders } from '../../src/console/server/headers.ts';
import { createKeptFiles, sendFile } from '../../src/console/server/kept-files.ts';
import { createLogger } from '../../src/lib/log.ts';
import { type ConsoleFile, consoleFiles } from '../../src/lib/packaging.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { eventually } from '../support/app.ts';
import { noBrowser, openBrowser } from '../support/browser.ts';
import { asServer, newWire } from '../support/servers.ts';
import { openTestStore } from '../support/store.ts';

const quick = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };

type Files = ReadonlyMap<string, ConsoleFile>;

/** The same pages, as another version would have them: every file of another name. */
function anotherVersion(files: Files): Files {
  const hashes = [...files.keys()].flatMap((path) => /-([A-Z0-9]{8})\./.exec(path)?.[1] ?? []);
  const rename = (text: string) =>
    hashes.reduce((changed, hash) => changed.replaceAll(hash, [...hash].reverse().join('')), text);
  return new Map(
    [...files].map(([path, { type, tag, plain: before }]) => {
      const plain = Buffer.from(rename(before.toString()));
      return [rename(path), { type, tag: `${tag}2`, plain, br: brotliCompressSync(plain, quick) }];
    }),
  );
}

function serverOf(store: Store, files: Files): RequestListener {
  const log = createLogger('silent');
  const keptFiles = createKeptFiles({ store, log, uptime: () => performance.now() });
  return (request, response) => {
    setPageHeaders(response);
    const path = (request.url ?? '').split('?')[0] ?? '';
    sendFile({ files: async () => files, keptFiles }, request, response, path).catch((error) =>
      sendError(response, error),
    );
  };
}

/** Pages of one, and of the other whatever they need besides. */
async function startFront(pages: RequestListener, rest: RequestListener) {
  const server = createServer((request, response) => {
    const isFile = request.url?.startsWith('/assets/');
    (isFile ? rest : pages)(request, response);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

test('while servers are upgraded, pages of either version load all of their files from any of them', {
  skip: noBrowser,
}, async () => {
  await using opened = await openTestStore();
  const wire = newWire();
  const before = await consoleFiles();
  const after = anotherVersion(before);
  const servers = [before, after].map((files) => serverOf(asServer(opened.store, wire), files));
  const [old, upgraded] = servers;
  assert.ok(old && upgraded);
  await using browser = await openBrowser();
  for (const [pages, rest, files] of [
    [upgraded, old, after],
    [old, upgraded, before],
  ] as const) {
    await using front = await startFront(pages, rest);
    // The first page waits for the database, but not for as long as a busy machine may take.
    const script = [...files.keys()].find((path) => /^assets\/app-.*\.js$/.test(path));
    await eventually(
      async () => {
        await (await fetch(front.url)).text();
        return (await fetch(`${front.url}/${script}`)).status;
      },
      (status) => status === 200,
    );
    await browser.withPage(
      async (page) => {
        const failed: string[] = [];
        page.on('response', (answer) => {
          if (answer.status() >= 400) failed.push(`${answer.status()} ${answer.url()}`);
        });
        await page.goto(`${front.url}/signed-out`);
        await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
        const chunk = [...files.keys()].find((path) => path.startsWith('assets/members-'));
        assert.deepEqual(await page.evaluate(`import('/${chunk}').then((it) => Object.keys(it))`), [
          'default',
        ]);
        assert.ok(Number(await page.evaluate('document.styleSheets[0].cssRules.length')) > 10);
        assert.deepEqual(failed, []);
      },
      undefined,
      true,
    );
  }
});

test('files of other versions are there for who reads no Brotli, are kept while pages name them, and then forgotten', async () => {
  let passed = 0;
  await using opened = await openTestStore(undefined, () => Date.now() + passed);
  const server = asServer(opened.store);
  const file = (text: string): ConsoleFile => ({
    type: 'text/javascript',
    tag: text,
    plain: Buffer.from(text),
  });
  const log = createLogger('silent');
  const start = () => createKeptFiles({ store: server, log, uptime: () => passed });
  const one = start();
  await one.keep(
    new Map([
      ['assets/a-1.js', file('one')],
      ['index.html', file('page')],
    ]),
  );
  assert.equal((await start().find('assets/a-1.js'))?.plain.toString(), 'one');
  assert.equal(await start().find('index.html'), undefined);
  assert.equal(await start().find('assets/../a-1.js'), undefined);

  passed += 6 * 24 * 3_600_000;
  await start().keep(new Map([['assets/a-1.js', file('one')]]));
  passed += 6 * 24 * 3_600_000;
  await start().keep(new Map([['assets/a-2.js', file('two')]]));
  assert.ok(await one.find('assets/a-1.js'), 'a page named it six days ago');
  passed += 2 * 24 * 3_600_000;
  await start().keep(new Map([['assets/a-2.js', file('two')]]));
  assert.equal(await one.find('assets/a-1.js'), undefined);
});
