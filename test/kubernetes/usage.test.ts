/** How many GPUs pods hold: counted where it may be, and otherwise not known. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldsOf } from '../support/fields.ts';
import { leastPrivilege } from './accounts.ts';
import type { KubernetesLab } from './lab.ts';
import { startKubernetesLab } from './lab.ts';

const gpu = (count: number | string) => ({ resources: { requests: { 'nvidia.com/gpu': `${count}` } } });
const pod = (nodeName: string | undefined, containers: object[], more: object = {}, phase = 'Running') => ({
  metadata: { name: 'x' },
  spec: { ...(nodeName && { nodeName }), containers, ...more },
  status: { phase },
});

/** Lets the service list pods. */
function allowPods({ api }: KubernetesLab): void {
  const rules = [...leastPrivilege, { apiGroups: [''], resources: ['pods'], verbs: ['list'] }];
  api.accounts['andromeda'] = { user: 'andromeda', rules };
}

async function inUse(lab: KubernetesLab): Promise<[string, number | undefined, string | undefined][]> {
  const { machines = [] } = await lab.pass();
  return machines.map(({ name, gpusInUse, reason }) => [name, gpusInUse, reason]);
}

test('GPUs in use are what pods request that have not ended, as the scheduler counts', async () => {
  await using lab = await startKubernetesLab();
  allowPods(lab);
  const sidecar = { ...gpu(1), restartPolicy: 'Always' };
  lab.api.pods = [
    pod('gpu-1', [gpu(2), {}]),
    pod('gpu-1', [gpu(1)], { initContainers: [gpu(2)] }),
    pod('gpu-1', [gpu(1)], { initContainers: [sidecar] }),
    pod('gpu-1', [{ resources: { limits: { 'nvidia.com/gpu': '1' } } }], {}, 'Pending'),
    pod('gpu-1', [gpu(8)], {}, 'Succeeded'),
    pod(undefined, [gpu(8)], {}, 'Pending'),
    pod('gpu-2', [gpu('3')]),
    pod('control-1', [{}]),
    { metadata: { name: 'says nothing' } },
    pod('gpu-1', [gpu('many')]),
  ];
  assert.deepEqual(await inUse(lab), [
    ['control-1', undefined, undefined],
    ['gpu-1', 7, undefined],
    ['gpu-2', 3, 'Kubelet stopped posting node status.'],
  ]);
  const { pods = [] } = await lab.pass();
  assert.deepEqual(
    pods.map(({ name, machine, gpus }) => `${name} ${machine} ${gpus}`),
    ['x gpu-2 3', 'x gpu-1 2', 'x gpu-1 2', 'x gpu-1 2', 'x gpu-1 1'],
  );
});

test('without the right to list pods it is unknown, and nothing must be mended', async () => {
  await using lab = await startKubernetesLab();
  lab.api.pods = [pod('gpu-1', [gpu(2)])];
  const { machines, failure } = await lab.pass();
  assert.deepEqual(fieldsOf(machines, 'gpusInUse'), [undefined, undefined, undefined]);
  assert.equal(failure, null);
});

test('a list that breaks off, or does not end, is no number', async () => {
  await using lab = await startKubernetesLab();
  allowPods(lab);
  lab.api.pods = Array.from({ length: 600 }, () => pod('gpu-1', [gpu(0)]));
  let pages = 0;
  lab.api.fault = ({ path }) => {
    if (path !== '/api/v1/pods') return undefined;
    pages += 1;
    return pages === 2
      ? { status: 410, headers: {}, body: { kind: 'Status', reason: 'Expired' } }
      : undefined;
  };
  assert.deepEqual((await inUse(lab))[1], ['gpu-1', undefined, undefined]);
  pages = 0;
  lab.api.fault = ({ path }) => {
    if (path !== '/api/v1/pods') return undefined;
    pages += 1;
    const body = { metadata: { continue: 'again' }, items: [] };
    return { status: 200, headers: { 'content-type': 'application/json' }, body };
  };
  await using other = await startKubernetesLab({ api: lab.api });
  assert.deepEqual((await inUse(other))[1], ['gpu-1', undefined, undefined]);
  assert.equal(pages, 500);
});

test('twenty thousand pods are read page by page, and not again at once', async () => {
  await using lab = await startKubernetesLab();
  allowPods(lab);
  lab.api.pods = Array.from({ length: 20_000 }, (_, index) => pod('gpu-1', [gpu(index < 5 ? 1 : 0)]));
  const pages = () => lab.api.asked.filter(({ path }) => path === '/api/v1/pods').length;
  assert.deepEqual((await inUse(lab))[1], ['gpu-1', 5, undefined]);
  assert.equal(pages(), 200);
  assert.deepEqual((await inUse(lab))[1], ['gpu-1', 5, undefined]);
  assert.equal(pages(), 200, 'the first count is good for a while');
});
