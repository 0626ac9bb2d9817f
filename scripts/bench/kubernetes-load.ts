/** Puts grants onto an API server: by the driver, or the same writes by the least that can make them. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { createInterface } from 'node:readline';
import type { KubernetesAccess } from '../../src/domain/kubernetes/bindings.ts';
import type { KubernetesSettings } from '../../src/domain/kubernetes/settings.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createKubernetesDriver } from '../../src/sync/kubernetes/index.ts';

export interface LoadOrder {
  kind: 'driver' | 'bare';
  settings: KubernetesSettings;
  clusterId: string;
  namespace: string;
}

const order = JSON.parse(process.argv[2] ?? '') as LoadOrder;
const atOnce = 16;
const steps = order.kind === 'driver' ? driver(order) : bare(order);
console.log('ready');
// Each line is a number of grants that there should be then, and from which on; what is printed is how long that took, in ms.
for await (const line of createInterface(process.stdin)) {
  const started = performance.now();
  const [count = 0, from = 0] = line.split(' ').map(Number);
  await steps.reach(count, from);
  console.log(performance.now() - started);
}
await steps.close();

function driver({ settings, clusterId, namespace }: LoadOrder) {
  const kubernetes = createKubernetesDriver({
    clusterId,
    name: 'bench',
    settings,
    rule: { claim: 'email', issuer: 'https://issuer.invalid' },
    wake() {},
    log: createLogger('silent'),
  });
  return {
    async reach(count: number, from: number) {
      const grants = Array.from({ length: count }, (_, index): KubernetesAccess['grants'][number] => ({
        userId: `user_${from + index}`,
        email: `person-${from + index}@physics.invalid`,
        preferredUsername: null,
        subjects: [],
        grantId: `grant_${from + index}`,
        relation: 'kubernetes.developer',
        scope: namespace,
        roleId: null,
      }));
      const signal = AbortSignal.timeout(120_000);
      const applied = await kubernetes.apply({ members: [], grants }, signal);
      const failure = applied?.failure ?? (await kubernetes.observe(signal)).failure;
      if (failure !== null) throw new Error(failure);
    },
    close: () => kubernetes.close(),
  };
}

function bare({ settings, clusterId, namespace }: LoadOrder) {
  const ca = readFileSync(settings.certificateAuthority ?? '');
  const token = readFileSync(settings.tokenFile ?? '', 'utf8');
  const session = connect(settings.server ?? '', { ca });
  let made = 0;
  const post = (n: number) =>
    new Promise<void>((resolve, reject) => {
      const request = session.request({
        ':method': 'POST',
        ':path': `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`,
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
      });
      request.on('error', reject).on('end', resolve).resume();
      request.end(
        JSON.stringify({
          metadata: { name: `bare.${clusterId}.${n}` },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
          subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: `person-${n}` }],
        }),
      );
    });
  return {
    async reach(count: number) {
      const worker = async () => {
        while (made < count) await post(made++);
      };
      await Promise.all(Array.from({ length: atOnce }, worker));
    },
    close: async () => session.close(),
  };
}
