/** Several servers behind the same names order one certificate. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CertificateOfAll, takeOrOrder } from '../../src/service/certificates/renewal.ts';
import { createAuthority } from '../support/certificate.ts';

const dayMs = 86_400_000;

test('one server orders, the others take that; another name, and one that is due, is ordered anew', async () => {
  const authority = createAuthority();
  let kept: Awaited<ReturnType<CertificateOfAll['find']>>;
  const all = (orders: boolean): CertificateOfAll => ({
    find: async () => kept,
    ordering() {
      if (!orders) return undefined;
      return {
        account: (make) => make(),
        async keep(certificate) {
          kept = certificate;
        },
      };
    },
  });
  let orders = 0;
  let days = 0;
  const obtain = (hosts: string[], mayOrder = true, signal = new AbortController().signal) => {
    const options = { directory: 'https://ca.example/dir', hosts, now: () => Date.now() + days * dayMs };
    const order = async () => {
      orders += 1;
      const { cert, key } = authority.issue('server');
      return Buffer.from(`${cert}${key}`);
    };
    return takeOrOrder(all(mayOrder), options, order, signal);
  };
  const over = AbortSignal.abort();
  await assert.rejects(obtain(['a.example'], false, over), /the server that orders it has not obtained it/);
  const first = await obtain(['a.example']);
  assert.deepEqual(await obtain(['a.example'], false, over), first);
  assert.deepEqual(await obtain(['a.example']), first);
  assert.equal(orders, 1);
  assert.notDeepEqual(await obtain(['b.example']), first);
  assert.equal(orders, 2);
  days = 1;
  await obtain(['b.example']);
  assert.equal(orders, 3);
});
