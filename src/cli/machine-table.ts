/** Machines as a table, for people and for operators. */

import { printer } from './answer.ts';
import type { Business } from './net/operations.ts';

/** What a row shows: the operator's view has it all; a member's is made into it. */
export type MachineRow = Pick<Business['OperatorMachine'], 'id' | 'name'> & {
  lifecycle_state: string;
} & Partial<
    Pick<
      Business['OperatorMachine'],
      | 'gpu_model'
      | 'gpu_count'
      | 'gpus_in_use'
      | 'cpu_cores'
      | 'memory_gib'
      | 'ready'
      | 'phase'
      | 'reason'
      | 'stale'
    >
  >;

export const machineTable = printer<MachineRow>(
  {
    NAME: (row) => row.name,
    STATE: (row) => row.lifecycle_state,
    READY: (row) => (row.stale ? undefined : row.ready),
    PHASE: (row) => (row.stale ? 'stale' : row.phase),
    GPUS: (row) => row.gpu_count,
    'IN-USE': (row) => (row.stale ? undefined : row.gpus_in_use),
    MODEL: (row) => row.gpu_model,
    CORES: (row) => row.cpu_cores,
    'MEMORY-GIB': (row) => row.memory_gib,
    REASON: (row) => (row.stale ? undefined : row.reason),
    ID: (row) => row.id,
  },
  'There are no machines on this cluster.',
);
