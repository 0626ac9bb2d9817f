/** Several servers behind the same names order one certificate. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SharedCertificate, takeOrOrder } from '../../src/service/certificates/renewal.ts';
import { createAuthority } from '../support/certificate.ts';

const dayMs = 86_400_000;

test('who comes first orders, the others take that; another name, and one that is due, is ordered anew', async () => {
  const authority = createAuthority();
  let kept: Awaited<ReturnType<SharedCertificate['find']>>;
  const shared: SharedCertificate = {
    account: (make) => make(),
    find: async () => kept,
    async keep(certificate) {
      kept = certificate;
    },
  };
  let orders = 0;
  let days = 0;
  const obtain = (hosts: string[]) => {
    const options = { directory: 'https://ca.example/dir', hosts, now: () => Date.now() + days * dayMs };
    return takeOrOrder(shared, options, async () => {
      orders += 1;
      const { cert, key } = authority.issue('server');
      return Buffer.from(`${cert}${key}`);
    });
  };
  const first = await obtain(['a.example']);
  assert.deepEqual(await obtain(['a.example']), first);
  assert.equal(orders, 1);
  assert.notDeepEqual(await obtain(['b.example']), first);
  assert.equal(orders, 2);
  days = 1;
  await obtain(['b.example']);
  assert.equal(orders, 3);
});
