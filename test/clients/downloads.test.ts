/** What the service offers its people to work with, at the Platform API and at the console. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import manifest from '../../package.json' with { type: 'json' };
import { discover, offeredVersion } from '../../src/cli/net/discovery.ts';
import { startConsoleApp } from '../console/harness.ts';
import { freePorts } from '../support/ports.ts';
import { entry, offerRelease } from './release.ts';

const [port = 0, consolePort = 0] = await freePorts(2);
const url = `http://127.0.0.1:${port}`;
const consoleUrl = `http://127.0.0.1:${consolePort}`;
/** One for all tests, which only read. */
const service = await startConsoleApp({
  config: { platform: { listen: `127.0.0.1:${port}` }, console: { listen: `127.0.0.1:${consolePort}` } },
});
const dataDir = join(service.test.dataDir, 'data');
after(() => service[Symbol.asyncDispose]());

const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex');
interface Listed {
  platform: string;
  path: string;
  bytes: number;
  sha256: string;
}
const listAt = async (base: string) => {
  const answer = await fetch(`${base}/download/list.json`);
  return (await answer.json()) as { version: string; files: Listed[] };
};
test('the console leads a client to the platform, and the platform leads a browser to the console', async () => {
  assert.equal((await discover(consoleUrl)).platformUrl, url);
  await assert.rejects(discover(`${url}/elsewhere`), /answered 401; is this the platform URL\?/);
  const visit = (accept: string) => fetch(`${url}/`, { headers: { accept }, redirect: 'manual' });
  const browser = await visit('text/html,application/xhtml+xml,*/*;q=0.8');
  assert.deepEqual([browser.status, browser.headers.get('location')], [302, consoleUrl]);
  for (const accept of ['*/*', 'application/json']) assert.equal((await visit(accept)).status, 401);
  assert.equal((await fetch(`${consoleUrl}/.well-known/security.txt`)).status, 404);
});

const bytesOf = async (answer: Response) => new Uint8Array(await answer.arrayBuffer());

test('the client is to be had without a token, at both addresses, and each is what its sum says', async () => {
  for (const at of [url, consoleUrl]) {
    const list = await listAt(at);
    assert.equal(list.version, manifest.version);
    assert.equal(await offeredVersion(at, 30_000), manifest.version, 'as the client asks');
    assert.deepEqual(
      list.files.map(({ platform }) => platform),
      ['node', 'npm'],
    );
    for (const { path, bytes, sha256: sum } of list.files) {
      const answer = await fetch(`${at}/${path}`);
      assert.equal(answer.status, 200, path);
      const content = await bytesOf(answer);
      assert.deepEqual([content.length, sha256(content)], [bytes, sum], path);
      assert.equal(answer.headers.get('etag'), `"${sum}"`);
      assert.equal(answer.headers.get('cache-control'), 'no-cache');
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
    }
  }
  const names = readdirSync(join(dataDir, 'clients')).map((name) => name.replace(/-.*\./, '-*.'));
  assert.deepEqual(names.sort(), ['portable-*.mjs', 'portable-*.tgz'], 'written once');
});

test('HEAD, conditions and ranges are answered as HTTP says', async () => {
  const at = `${url}/andromeda.mjs`;
  const whole = await bytesOf(await fetch(at));
  const head = await fetch(at, { method: 'HEAD' });
  assert.deepEqual(
    [head.status, head.headers.get('content-length'), (await bytesOf(head)).length],
    [200, String(whole.length), 0],
  );
  const etag = head.headers.get('etag') ?? '';
  // fetch itself would ask for it anew.
  const known = await rawGet(url, '/andromeda.mjs', `If-None-Match: ${etag}\r\n`);
  assert.deepEqual([known.status, known.body], [304, '']);
  const part = async (range: string, headers = {}) => {
    const answer = await fetch(at, { headers: { Range: range, ...headers } });
    return { status: answer.status, range: answer.headers.get('content-range'), body: await bytesOf(answer) };
  };
  const rows: [string, number, number][] = [
    ['bytes=0-9', 0, 10],
    ['bytes=100-', 100, whole.length],
    ['bytes=-20', whole.length - 20, whole.length],
  ];
  for (const [range, from, to] of rows) {
    const { status, range: said, body } = await part(range, { 'If-Range': etag });
    assert.deepEqual([status, said], [206, `bytes ${from}-${to - 1}/${whole.length}`], range);
    assert.deepEqual(Buffer.from(body), Buffer.from(whole.subarray(from, to)), range);
  }
  assert.equal((await part('bytes=0-9', { 'If-Range': '"another"' })).status, 200, 'it is another file now');
  const all = await part('bytes=-999999999');
  assert.deepEqual([all.status, all.range], [206, `bytes 0-${whole.length - 1}/${whole.length}`]);
  assert.deepEqual([all.body.length, (await part('bytes=-0')).status], [whole.length, 416]);
  for (const [match, status] of [
    ['"another"', 412],
    [etag, 200],
  ] as const)
    assert.equal((await fetch(at, { headers: { 'If-Match': match } })).status, status, match);
  const beyond = await part(`bytes=${whole.length}-`);
  assert.deepEqual([beyond.status, beyond.range], [416, `bytes */${whole.length}`]);
  assert.equal(JSON.parse(Buffer.from(beyond.body).toString()).code, 'invalid_request');
});

test('the page is whole without script, and has what fits the visitor first', async () => {
  const page = async (agent: string) => {
    const answer = await fetch(`${url}/download`, { headers: { 'User-Agent': agent } });
    const policy = answer.headers.get('content-security-policy') ?? '';
    assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'none'/);
    return answer.text();
  };
  const agents: [string, string[]][] = [
    ['Mozilla/5.0 (X11; Linux x86_64)', ['Linux', 'macOS', 'Windows']],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)', ['macOS', 'Linux', 'Windows']],
    ['Mozilla/5.0 (Windows NT 10.0; Win64; x64)', ['Windows', 'Linux', 'macOS']],
    ['', ['Linux', 'macOS', 'Windows']],
  ];
  for (const [agent, expected] of agents) {
    const text = await page(agent);
    const found = [...text.matchAll(/<h2>(Linux|macOS|Windows)<\/h2>/g)].map(([, name]) => name);
    assert.deepEqual(found, expected, agent);
    assert.doesNotMatch(text, /<script|javascript:|\son\w+=| style=/i);
    assert.ok(text.includes(`curl -fsSL ${url}/install.sh | sh`), text);
  }
  const sum = sha256(await bytesOf(await fetch(`${url}/andromeda.mjs`)));
  assert.ok((await page('')).includes(sum));
});

test('scripts have the addresses and the sums in them, and a shell reads them', async () => {
  const sum = sha256(await bytesOf(await fetch(`${url}/andromeda.mjs`)));
  for (const name of ['install.sh', 'install.ps1']) {
    const text = await fetch(`${consoleUrl}/${name}`).then((answer) => answer.text());
    assert.doesNotMatch(text, /@[A-Z_]+@/);
    for (const part of [consoleUrl, `'${url}'`, `'${sum}'`]) assert.ok(text.includes(part), part);
    if (name === 'install.sh') execFileSync('sh', ['-n'], { input: text });
  }
});

test('executables are offered once a release is unpacked, also while the service runs; what is not there is not', async () => {
  const content = Buffer.alloc(300_000, 'x');
  const offer = (version: string, name: string) =>
    offerRelease(
      dataDir,
      version,
      [{ platform: 'linux-x64', name, content, tested: false, note: 'Not <run> here.' }],
      [entry('clients.json.sig', 'signature')],
    );
  assert.equal((await fetch(`${url}/download/andromeda-linux-x64`)).status, 404);
  offer('1.0.0', 'andromeda-linux-x64');
  const got = await fetch(`${url}/download/andromeda-linux-x64`);
  assert.equal(got.status, 200, await got.clone().text());
  assert.equal(sha256(await bytesOf(got)), sha256(content));
  const page = await fetch(`${url}/download`).then((answer) => answer.text());
  assert.match(page, /href="download\/andromeda-linux-x64"/);
  assert.match(page, /Not run by whoever released it\..*\n.*Not &lt;run&gt; here\./);
  assert.match(page, /clients\.json\.sig/);
  const script = await fetch(`${url}/install.sh`).then((answer) => answer.text());
  assert.ok(script.includes(`linux-x64 andromeda-linux-x64 ${sha256(content)}`));
  for (const name of ['clients.json', 'clients.json.sig'])
    assert.equal((await fetch(`${url}/download/${name}`)).status, 200, name);

  offer('1.0.1', 'andromeda-linux');
  assert.equal((await fetch(`${url}/download/andromeda-linux-x64`)).status, 404);
  assert.equal((await fetch(`${url}/download/andromeda-linux`)).status, 200);
  const { size: bytes } = statSync(join(dataDir, 'andromeda.db'));
  const strange = [
    { platform: 'linux-x64', name: '../andromeda.db', bytes, sha256: sha256(content) },
    { platform: 'linux-x64', name: 'andromeda-linux', bytes: content.length, sha256: "'; rm -rf /" },
    { platform: 'plan9', name: 'andromeda-linux', bytes: content.length, sha256: sha256(content) },
    { platform: 'linux-x64', name: 'andromeda-gone', bytes: content.length, sha256: sha256(content) },
    { platform: 'linux-x64', name: 'andromeda-linux', bytes: 1, sha256: sha256(content) },
  ];
  const list = join(dataDir, 'clients/clients.json');
  writeFileSync(list, JSON.stringify({ version: '1.0.2', files: strange }));
  assert.equal((await listAt(url)).files.length, 2, 'what is not sound, or not there, is not offered');
  writeFileSync(list, '{');
  assert.match(await fetch(`${url}/download`).then((answer) => answer.text()), /is no list of a release\./);
  rmSync(list);
});

test('nothing else is within reach, and every refusal has the form of the contract', async () => {
  const paths = [
    '/download/',
    '/download/x',
    '/download/../andromeda.db',
    '/download/..%2fandromeda.db',
    '/download/%2e%2e%2f%2e%2e%2fandromeda.db',
    '/download/current',
    '/download/%zz',
    '/install.sh/',
  ];
  for (const base of [url, consoleUrl]) {
    for (const path of paths) {
      const { status, body } = await rawGet(base, path);
      if (path === '/download/') {
        assert.equal(status, 308);
        continue;
      }
      if (status === 200) {
        assert.match(body, /<!doctype html>/, `${path}: a place in the console`);
        continue;
      }
      assert.ok([400, 401, 403, 404].includes(status), `${base}${path}: ${status}`);
      const { code, message, retryable } = JSON.parse(body);
      assert.deepEqual([typeof code, typeof message, retryable], ['string', 'string', false], path);
    }
  }
  // The API's own addresses, and others, are still behind its authentication.
  for (const path of ['/downloads', '/clusters', '/andromeda.zip', '/nothing']) {
    const answer = await service.test.platform(path);
    assert.deepEqual([answer.status, answer.body.code], [401, 'unauthorized'], path);
  }
  for (const base of [url, consoleUrl]) {
    for (const path of ['/download', '/download/list.json', '/andromeda.mjs', '/install.sh']) {
      for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
        const answer = await fetch(`${base}${path}`, { method });
        assert.deepEqual(
          [answer.status, answer.headers.get('allow')],
          [405, 'GET, HEAD'],
          `${method} ${path}`,
        );
      }
    }
    const slash = await fetch(`${base}/download/`);
    assert.deepEqual([slash.status, slash.url], [200, `${base}/download`]);
  }
});

/** Asks for a path as it is written, which fetch would tidy up. */
function rawGet(base: string, path: string, headers = ''): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), hostname, () => {
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\n${headers}Connection: close\r\n\r\n`);
    });
    socket.setEncoding('utf8').on('data', (part) => {
      text += part;
    });
    socket.on('error', reject);
    socket.on('close', () => {
      const [head = '', body = ''] = text.split(/\r\n\r\n([\s\S]*)/);
      const isChunked = /transfer-encoding: chunked/i.test(head);
      resolve({ status: Number(head.split(' ')[1]), body: isChunked ? (body.split('\r\n')[1] ?? '') : body });
    });
  });
}
