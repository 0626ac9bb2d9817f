/** Machines as a table, for people and for operators. */
import { printer } from './answer.ts';

export interface MachineRow {
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
