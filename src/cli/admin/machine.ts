/** `andromeda admin machine`: the machines of one cluster. */
import { machineTable } from '../machine-table.ts';
import type { Reader } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { pick } from '../pick.ts';
import { type Noun, reads, required, writes } from '../verb.ts';
import { findCluster } from './cluster.ts';

type Machine = Business['OperatorMachine'];

interface OnCluster {
  cluster: string;
}

const clusterFlag = required('--cluster <name>', 'the cluster, by name or ID');

async function list(api: Reader, { cluster }: OnCluster) {
  const { id } = (await findCluster(api, cluster)).cluster;
  return api.get('/operator/clusters/{clusterID}/machines', { path: { clusterID: id } });
}

async function find(api: Reader, options: OnCluster, name: string): Promise<{ machineID: string }> {
  const kind = {
    one: `machine on ${options.cluster}`,
    many: `machines on ${options.cluster}`,
    nameOf: (machine: Machine) => machine.name,
    idOf: (machine: Machine) => machine.id,
  };
  return { machineID: pick(kind, (await list(api, options)).machines, name).id };
}

export const machine: Noun = {
  name: 'machine',
  summary: 'machines of a cluster, and which of them may do work',
  verbs: [
    reads<OnCluster>({
      usage: 'list',
      summary: 'the machines of a cluster',
      example: 'machine list --cluster alpha',
      flags: [clusterFlag],
      async run({ api, options }) {
        const json = await list(api, options);
        return machineTable.many(json, json.machines);
      },
    }),
    writes<OnCluster>({
      usage: 'admit <name>',
      summary: 'let a machine do work',
      example: 'machine admit node-1 --cluster alpha',
      flags: [clusterFlag],
      async run({ api, options }, name = '') {
        const path = await find(api, options, name);
        return machineTable.one(await api.post('/operator/machines/{machineID}/admit', { path }));
      },
    }),
    writes<OnCluster>({
      usage: 'quarantine <name>',
      summary: 'keep a machine from doing work',
      example: "machine quarantine node-1 --cluster alpha --reason 'ECC errors'",
      flags: [clusterFlag],
      async run({ api, options }, name = '') {
        const path = await find(api, options, name);
        return machineTable.one(await api.post('/operator/machines/{machineID}/quarantine', { path }));
      },
    }),
  ],
};
