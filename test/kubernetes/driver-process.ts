/** A driver in a process of its own, to be killed: brings an API server to as many grants as it is told. */
import { createLogger } from '../../src/lib/log.ts';
import { createKubernetesDriver } from '../../src/sync/kubernetes/index.ts';
import { clusterId, grant } from './lab.ts';

const { settings, count } = JSON.parse(process.argv[2] ?? '');
const grants = Array.from({ length: count }, (_, n) => grant(`g${n}`));
const driver = createKubernetesDriver({
  clusterId,
  name: 'gamma',
  settings,
  rule: { claim: 'email', issuer: 'https://issuer.example' },
  wake() {},
  log: createLogger('silent'),
});
await driver.apply({ members: [], grants }, AbortSignal.timeout(60_000));
await driver.close();
