/** Nodes × GPUs as a picture: a row of squares for each node, of the shape and colour of its state. */
import type { Machine } from '../reads.ts';
import type { Kind } from './state.tsx';

/** What a machine is good for, in a word. */
export function machineState({ lifecycle_state: state, observed }: Machine): { kind: Kind; word: string } {
  if (state === 'quarantined') return { kind: 'warn', word: 'Quarantined' };
  if (!observed || observed.freshness === 'unknown') return { kind: 'none', word: 'Not reported' };
  if (observed.freshness === 'stale') return { kind: 'none', word: 'Not reported lately' };
  if (!observed.ready) return { kind: 'bad', word: observed.phase || 'Not ready' };
  return { kind: 'good', word: observed.phase || 'Ready' };
}

/** A sentence such as "16 of 16 GPUs ready on 2 nodes". */
export function gpusOf(machines: readonly Machine[]): string {
  const count = (list: readonly Machine[]) =>
    list.reduce((sum, { hardware }) => sum + (hardware.gpu_count ?? 0), 0);
  const ready = machines.filter((machine) => machineState(machine).kind === 'good');
  const all = count(machines);
  const nodes = `${machines.length} ${machines.length === 1 ? 'node' : 'nodes'}`;
  if (machines.length === 0) return 'No machine is known yet';
  if (all === 0) return `${ready.length} of ${nodes} ready`;
  return `${count(ready)} of ${all} GPUs ready on ${nodes}`;
}

const mostNodes = 64;
const mostGpus = 16;

export function Gpus({ machines }: { machines: readonly Machine[] }) {
  if (machines.length === 0) return null;
  const shown = machines.slice(0, mostNodes);
  return (
    <figure className="gpus" role="img" aria-label={gpusOf(machines)}>
      {shown.map((machine) => {
        const { kind, word } = machineState(machine);
        const count = Math.max(1, Math.min(machine.hardware.gpu_count ?? 1, mostGpus));
        return (
          <div key={machine.id} className={`node ${kind}`} title={`${machine.name}: ${word}`}>
            <span className="name">{machine.name}</span>
            <svg viewBox={`0 0 ${count * 12} 12`} width={count * 12} height={12} aria-hidden="true">
              {Array.from({ length: count }, (_, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: squares have no identity
                <Square key={index} x={index * 12} kind={kind} />
              ))}
            </svg>
          </div>
        );
      })}
      {machines.length > shown.length && <p className="soft">and {machines.length - shown.length} more</p>}
    </figure>
  );
}

function Square({ x, kind }: { x: number; kind: Kind }) {
  return (
    <>
      <rect x={x + 1} y="1" width="9" height="9" rx="1.5" />
      {kind !== 'good' && <path d={`M${x + 1.5} 9.5 ${x + 9.5} 1.5`} className="cross" />}
    </>
  );
}
