import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientAddress, createTrustedProxies, sourceNetwork } from '../../src/lib/source-address.ts';

const proxies = createTrustedProxies(['127.0.0.1', '10.0.0.0/8', '2001:db8:f::/48']);
const from = (remoteAddress: string, headers: Record<string, string>) =>
  clientAddress(proxies, { socket: { remoteAddress }, headers });

test('the headers of anyone but a trusted proxy say nothing', () => {
  const headers = { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' };
  assert.equal(from('198.51.100.7', headers), '198.51.100.7');
  assert.equal(from('::ffff:198.51.100.7', headers), '198.51.100.7');
  assert.equal(from('127.0.0.1', {}), '127.0.0.1');
  const none = createTrustedProxies([]);
  assert.equal(clientAddress(none, { socket: { remoteAddress: '127.0.0.1' }, headers }), '127.0.0.1');
});

test('of what a trusted proxy says, the last address that is no trusted proxy counts', () => {
  const lists: [string, string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['6.6.6.6, 192.0.2.1', '192.0.2.1'],
    ['6.6.6.6, 192.0.2.1, 10.1.2.3, 127.0.0.1', '192.0.2.1'],
    ['nonsense, 192.0.2.1,10.1.2.3', '192.0.2.1'],
    ['192.0.2.1:4711', '192.0.2.1'],
    ['[2001:DB8::1]:4711, 2001:db8:f::9', '2001:db8::1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['[0:0:0:0:0:FFFF:c000:201]:4711', '192.0.2.1'],
    ['192.0.2.1, ::ffff:a01:203, ::FFFF:10.1.2.3', '192.0.2.1'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8::1'],
    ['10.0.0.5, 10.0.0.6', '10.0.0.5'],
  ];
  for (const [header, client] of lists) {
    assert.equal(from('127.0.0.1', { 'x-forwarded-for': header }), client, header);
    assert.equal(from('::ffff:10.9.9.9', { 'x-forwarded-for': header }), client, header);
  }
  const forwarded: [string, string][] = [
    ['for=192.0.2.1', '192.0.2.1'],
    ['For="[2001:db8::1]:4711";proto=https;by=203.0.113.43', '2001:db8::1'],
    ['for=6.6.6.6 , proto=http; for=192.0.2.1, for=10.1.1.1', '192.0.2.1'],
    ['for=_hidden, for="192.0.2.1:_port"', '192.0.2.1'],
  ];
  for (const [header, client] of forwarded)
    assert.equal(from('127.0.0.1', { forwarded: header }), client, header);
});

test('what cannot be read, and what contradicts itself, leaves the proxy’s own address', () => {
  for (const header of [
    '',
    'unknown',
    '192.0.2.1, ',
    '192.0.2.1, x',
    '192.0.2.1, 1.2.3',
    ',,,,',
    '[::1',
    ' '.repeat(15_000),
  ]) {
    assert.equal(from('127.0.0.1', { 'x-forwarded-for': header }), '127.0.0.1', header);
  }
  const broken = [
    '',
    'for',
    'for=',
    'for=_hidden',
    'by=192.0.2.1',
    'for="192.0.2.1',
    'for=", for=192.0.2.1',
    ';;',
    `for=192.0.2.1${' '.repeat(15_000)}x`,
  ];
  for (const forwarded of broken) assert.equal(from('127.0.0.1', { forwarded }), '127.0.0.1', forwarded);
  const both = (list: string, forwarded: string) => from('127.0.0.1', { 'x-forwarded-for': list, forwarded });
  assert.equal(both('192.0.2.1', 'for=192.0.2.1'), '192.0.2.1');
  assert.equal(both('192.0.2.1', 'for=6.6.6.6'), '127.0.0.1');
  assert.equal(both('192.0.2.1', 'nonsense'), '127.0.0.1');
});

test('a proxy may be named as IPv4 or as IPv4 in IPv6', () => {
  const named = createTrustedProxies(['::ffff:192.0.2.0/120', '::ffff:c633:6401']);
  const addresses = ['192.0.2.9', '::ffff:192.0.2.9', '198.51.100.1', '192.0.3.9', 'fe80::1'];
  assert.deepEqual(
    addresses.map((address) => named.has(address)),
    [true, true, true, false, false],
  );
});

test('one source is an IPv4 address or an IPv6 network of 56 bits', () => {
  const table = [
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::ffff:a00:1', '10.0.0.1'],
    ['0:0:0:0:0:ffff:a00:1', '10.0.0.1'],
    ['2001::5:6:7:8:9', '2001:0:0:0::/56'],
    ['2001:db8:1:1202:3:4:5:6', '2001:db8:1:1200::/56'],
    ['2001:db8:1:12ff::9', '2001:db8:1:1200::/56'],
    ['2001:db8:1:1300::9', '2001:db8:1:1300::/56'],
    ['2001:db8:1:f::', '2001:db8:1:0::/56'],
    ['2001:db8::9', '2001:db8:0:0::/56'],
    ['::1', '0:0:0:0::/56'],
    ['fe80::1%eth0', 'fe80:0:0:0::/56'],
  ] as const;
  for (const [address, expected] of table) assert.equal(sourceNetwork(address), expected, address);
});
