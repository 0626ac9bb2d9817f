/** `andromeda admin machine`: the machines of one cluster. */
import { printer } from './answer.ts';
import { type Api, at, type Reader } from './client.ts';
import { findCluster } from './cluster.ts';
import { pick } from './pick.ts';
import { type Noun, reads, required, writes } from './verb.ts';

export interface Machine {
  id: string;
  name: string;
  lifecycle_state: string;
  gpu_model?: string;
  gpu_count?: number;
  cpu_cores?: number;
  memory_gib?: number;
  ready?: boolean;
  phase?: string;
}

interface OnCluster {
  cluster: string;
}

const machines = printer<Machine>(
  {
    NAME: (row) => row.name,
    STATE: (row) => row.lifecycle_state,
    READY: (row) => row.ready,
    PHASE: (row) => row.phase,
    GPUS: (row) => row.gpu_count,
    MODEL: (row) => row.gpu_model,
    CORES: (row) => row.cpu_cores,
    'MEMORY-GIB': (row) => row.memory_gib,
    ID: (row) => row.id,
  },
  'There are no machines on this cluster.',
);

const clusterFlag = required('--cluster <name>', 'the cluster, by name or ID');

async function list(api: Reader, { cluster }: OnCluster) {
  const { id } = (await findCluster(api, cluster)).cluster;
  return api.get<{ machines: Machine[] }>(at`/operator/clusters/${id}/machines`);
}

async function change(api: Api, options: OnCluster, name: string, what: string) {
  const kind = {
    one: `machine on ${options.cluster}`,
    many: `machines on ${options.cluster}`,
    nameOf: (machine: Machine) => machine.name,
    idOf: (machine: Machine) => machine.id,
  };
  const { id } = pick(kind, (await list(api, options)).machines, name);
  return machines.one(await api.write('POST', at`/operator/machines/${id}/${what}`));
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
        return machines.many(json, json.machines);
      },
    }),
    writes<OnCluster>({
      usage: 'admit <name>',
      summary: 'let a machine do work',
      example: 'machine admit node-1 --cluster alpha',
      flags: [clusterFlag],
      run: ({ api, options }, name = '') => change(api, options, name, 'admit'),
    }),
    writes<OnCluster>({
      usage: 'quarantine <name>',
      summary: 'keep a machine from doing work',
      example: "machine quarantine node-1 --cluster alpha --reason 'ECC errors'",
      flags: [clusterFlag],
      run: ({ api, options }, name = '') => change(api, options, name, 'quarantine'),
    }),
  ],
};
