/** What a report says of a Kubernetes cluster, of answers that were recorded, and how many GPUs its pods hold. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldsOf } from '../support/fields.ts';
import { leastPrivilege } from './accounts.ts';
import { type KubernetesLab, startKubernetesLab } from './lab.ts';
import { recorded } from './recorded.ts';

const rook = '/apis/ceph.rook.io/v1';
const classes = '/apis/storage.k8s.io/v1/storageclasses';

test('it says the versions, where the API server is, and that it is ready', async () => {
  await using lab = await startKubernetesLab({ settings: { publicServer: 'https://gamma.example:6443' } });
  const { kubernetes, scheduler, controlPlaneReady, failure } = await lab.pass();
  assert.deepEqual(kubernetes, {
    server: 'https://gamma.example:6443',
    certificateAuthority: lab.api.authority.ca,
    ready: true,
    version: 'v1.34.9',
    kubeletVersion: 'v1.34.1',
  });
  assert.deepEqual(scheduler, { configured: 'kubernetes', ready: { status: 'True', reason: 'Ready' } });
  assert.deepEqual([controlPlaneReady, failure], [true, null]);
});

test('nodes are machines: GPUs and model, CPUs, memory, and whether they are ready', async () => {
  await using lab = await startKubernetesLab();
  const { machines } = await lab.pass();
  const hardware = { gpuModel: 'NVIDIA-H100-80GB-HBM3', gpuCount: 8, cpuCores: 192, memoryGib: 2015 };
  assert.deepEqual(machines, [
    { name: 'control-1', ready: true, phase: 'Ready', cpuCores: 16, memoryGib: 62 },
    { name: 'gpu-1', ready: true, phase: 'Ready', ...hardware },
    // Its kubelet is gone, and so is what it could offer; the GPUs are in it all the same.
    {
      name: 'gpu-2',
      ready: false,
      phase: 'Unknown',
      reason: 'Kubelet stopped posting node status.',
      ...hardware,
    },
  ]);
});

const readiness: [string, string, string, RegExp | undefined][] = [
  ['version-and-health/readyz', 'True', 'Ready', undefined],
  ['version-and-health/readyz-shutting-down-500', 'False', 'NotReady', /Checks that fail: shutdown\./],
  ['version-and-health/readyz-starting-403', 'Unknown', 'ReadinessUnknown', /\(403\)/],
];
for (const [name, status, reason, message] of readiness) {
  test(`${name}: ControlPlaneAvailable is ${status}`, async () => {
    await using lab = await startKubernetesLab();
    lab.api.says['/readyz'] = name;
    const { scheduler, kubernetes, controlPlaneReady } = await lab.pass();
    assert.deepEqual([scheduler?.ready?.status, scheduler?.ready?.reason], [status, reason]);
    if (message) assert.match(scheduler?.ready?.message ?? '', message);
    assert.deepEqual([kubernetes?.ready, controlPlaneReady], [status === 'True', status === 'True']);
  });
}

test('without Rook there is no Ceph; storage classes say WEKA, and NFS where it is alone', async () => {
  await using lab = await startKubernetesLab();
  assert.deepEqual((await lab.pass()).storage, { ceph: false, weka: true, nfs: false });
  lab.api.says[classes] = 'storageclasses/list-empty';
  assert.deepEqual((await lab.pass()).storage, { ceph: false, weka: false, nfs: false });
  lab.api.fault = ({ path }) => {
    if (path !== classes) return undefined;
    const list = recorded('storageclasses/list') as { body: { items: { provisioner: string }[] } };
    const items = list.body.items.filter(({ provisioner }) => provisioner !== 'csi.weka.io');
    return { ...recorded('storageclasses/list'), body: { ...list.body, items } };
  };
  assert.deepEqual((await lab.pass()).storage, { ceph: false, weka: false, nfs: true });
});

/** On a cluster with Rook, of whose Ceph cluster this recording tells. */
async function storageOf(cephClusters: string, settings: { subVolumeGroup?: string }) {
  await using lab = await startKubernetesLab({ settings });
  lab.api.says[`${rook}/cephclusters`] = cephClusters;
  lab.api.says[`${rook}/cephfilesystems`] = 'rook/cephfilesystems';
  lab.api.says[`${rook}/cephfilesystemsubvolumegroups`] = 'rook/cephfilesystemsubvolumegroups';
  return (await lab.pass()).storage;
}

const ceph: [string, string, string, RegExp][] = [
  ['rook/cephclusters-new', 'Unknown', 'NoStatus', /says nothing of rook-ceph yet/],
  ['rook/cephclusters-progressing', 'False', 'Progressing', /rook-ceph: Configuring Ceph Mons/],
  ['rook/cephclusters-ready', 'True', 'Ready', /^$/],
  ['rook/cephclusters-health-warn', 'True', 'HEALTH_WARN', /rook-ceph: 1 osds down/],
];
for (const [name, status, reason, message] of ceph) {
  test(`${name}: Ceph is configured, and StorageReady is ${status}`, async () => {
    const storage = await storageOf(name, { subVolumeGroup: 'org-physics' });
    assert.deepEqual([storage?.ceph, storage?.weka, storage?.nfs], [true, true, false]);
    assert.deepEqual([storage?.ready?.status, storage?.ready?.reason], [status, reason]);
    assert.match(storage?.ready?.message ?? '', message);
  });
}

test('no CephCluster under Rook is no Ceph', async () => {
  assert.equal((await storageOf('rook/cephclusters-none', {}))?.ceph, false);
});

const groups: [string | undefined, number | undefined, string][] = [
  ['org-physics', 10 * 2 ** 40, 'True'],
  ['org-chem', 107_374_182_400, 'False'],
  ['scratch', undefined, 'Unknown'],
  // Of several it is not known whose is which.
  [undefined, undefined, 'True'],
];
for (const [subVolumeGroup, quotaBytes, status] of groups) {
  test(`the quota is the sub-volume group's: ${subVolumeGroup ?? 'none said'}`, async () => {
    const storage = await storageOf('rook/cephclusters-ready', subVolumeGroup ? { subVolumeGroup } : {});
    assert.deepEqual([storage?.quotaBytes, storage?.ready?.status], [quotaBytes, status]);
  });
}

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
