/** Machines as a table, for people and for operators. */

import { printer } from './answer.ts';
import type { Business } from './net/operations.ts';

/** What a row shows: the operator's view has it all; a member's is made into it. */
export type MachineRow = Pick<Business['OperatorMachine'], 'id' | 'name'> & {
  lifecycle_state: string;
} & Partial<
    Pick<
      Business['OperatorMachine'],
      'gpu_model' | 'gpu_count' | 'cpu_cores' | 'memory_gib' | 'ready' | 'phase'
    >
  >;

export const machineTable = printer<MachineRow>(
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
