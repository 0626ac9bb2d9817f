/** A picture of nodes × GPUs: a row of squares for each node, whose shape and colour show the state of each GPU. */
import type { components } from '../../../api/generated/platform.ts';
import { describeGpuUsage } from '../../../domain/clusters/gpu-usage.ts';
import type { Machine, Usage } from '../reads.ts';
import { Two } from './table.tsx';
import { count, type Kind, State, Text } from './values.tsx';

type MachineUsage = Usage['machines'][number];

export function machineState({ lifecycle_state: state, observed }: Machine): { kind: Kind; word: string } {
  if (state === 'quarantined') return { kind: 'none', word: 'Quarantined' };
  if (!observed || observed.freshness === 'unknown') return { kind: 'none', word: 'Not reported' };
  if (observed.freshness === 'stale') return { kind: 'none', word: 'Not reporting' };
  if (!observed.ready) return { kind: 'bad', word: observed.phase || 'Not ready' };
  return { kind: 'good', word: observed.phase || 'Ready' };
}

interface StateOptions {
  kind: Kind;
  word: string;
  reason: string | undefined;
}

export function MachineState({ kind, word, reason }: StateOptions) {
  const state = (
    <div>
      <State kind={kind}>{word}</State>
    </div>
  );
  return <Two first={state} second={reason && <Text of={reason} />} />;
}

export function Ready({ condition }: { condition: components['schemas']['Condition'] | undefined }) {
  if (!condition) return <State kind="none">Not reported</State>;
  const { status, reason, message } = condition;
  if (status === 'True') return <State kind="good">Working</State>;
  const kind = status === 'False' ? 'bad' : 'none';
  return (
    <>
      <State kind={kind}>{reason ?? 'Unknown'}</State> {message && <Text of={message} />}
    </>
  );
}

/** A sentence such as "11 of 16 GPUs free on 2 nodes". */
export function gpusOf({ gpus, machines }: Usage): string {
  const nodes = count(machines.length, 'node');
  if (machines.length === 0) return 'No machines reported yet';
  if (gpus.total > 0) return `${describeGpuUsage(gpus)} on ${nodes}`;
  return `${machines.filter(({ takes_work: takesWork }) => takesWork === true).length} of ${nodes} ready`;
}

type GpuState = 'free' | 'used' | 'away' | 'unknown';

function statesOf({
  gpu_count: count = 0,
  gpus_in_use: inUse,
  takes_work: takesWork,
}: MachineUsage): GpuState[] {
  const held = Math.min(inUse ?? 0, count);
  const left = takesWork === false ? 'away' : takesWork === null || inUse === undefined ? 'unknown' : 'free';
  return Array.from({ length: count }, (_, index) => (index < held ? 'used' : left));
}

const labels: Record<GpuState, string> = {
  free: 'free',
  used: 'in use',
  away: 'unavailable',
  unknown: 'unknown',
};

const mostNodes = 64;
const mostGpus = 16;

export function Gpus({ usage }: { usage: Usage }) {
  const { machines, gpus } = usage;
  if (machines.length === 0) return null;
  const shown = machines.slice(0, mostNodes);
  return (
    <>
      <figure className="gpus" role="img" aria-label={gpusOf(usage)}>
        {shown.map((machine) => (
          <Node key={machine.id} machine={machine} />
        ))}
        {machines.length > shown.length && <p className="soft">and {machines.length - shown.length} more</p>}
      </figure>
      {gpus.total > 0 && <Legend gpus={gpus} />}
      <Away machines={machines} />
    </>
  );
}

function Node({ machine }: { machine: MachineUsage }) {
  const all = statesOf(machine);
  // A node without GPUs is one square with the node's state.
  const own: GpuState =
    machine.takes_work === true ? 'free' : machine.takes_work === false ? 'away' : 'unknown';
  const states = all.length === 0 ? [own] : all.slice(0, mostGpus);
  const count = (state: GpuState) => all.filter((one) => one === state).length;
  const present = (Object.keys(labels) as GpuState[]).filter((state) => count(state) > 0);
  const title = [
    machine.name,
    ...present.map((state) => `${count(state)} ${labels[state]}`),
    machine.reason ?? [],
  ].flat();
  return (
    <div className="node" title={title.join(', ')}>
      <span className="name">{machine.name}</span>
      <svg viewBox={`0 0 ${states.length * 12} 12`} width={states.length * 12} height={12} aria-hidden="true">
        {states.map((state, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: squares have no identity
          <Square key={index} x={index * 12} state={state} />
        ))}
      </svg>
      {all.length > mostGpus && <span className="soft">+{all.length - mostGpus}</span>}
    </div>
  );
}

function Square({ x, state }: { x: number; state: GpuState }) {
  return (
    <g className={state}>
      <rect x={x + 1} y="1" width="9" height="9" rx="1.5" />
      {state === 'away' && <path d={`M${x + 1.5} 9.5 ${x + 9.5} 1.5`} />}
      {state === 'used' && <rect className="dot" x={x + 3.5} y="3.5" width="4" height="4" />}
    </g>
  );
}

function Legend({ gpus: { free, in_use: used, away, unknown } }: Pick<Usage, 'gpus'>) {
  const counts = { free, used, away, unknown };
  return (
    <ul className="legend">
      {(Object.keys(labels) as GpuState[])
        .filter((state) => counts[state] > 0)
        .map((state) => (
          <li key={state}>
            <svg className="gpu-key" viewBox="0 0 12 12" aria-hidden="true">
              <Square x={0} state={state} />
            </svg>
            {counts[state]} {labels[state]}
          </li>
        ))}
    </ul>
  );
}

const mostNamed = 5;

function Away({ machines }: { machines: readonly MachineUsage[] }) {
  const away = machines.filter(({ takes_work: takesWork }) => takesWork === false);
  if (away.length === 0) return null;
  return (
    <ul className="away small">
      {away.slice(0, mostNamed).map(({ id, name, reason }) => (
        <li key={id}>
          <b>{name}</b> is unavailable{reason === undefined ? '.' : ': '}
          {reason !== undefined && <Text of={reason} />}
        </li>
      ))}
      {away.length > mostNamed && <li>and {away.length - mostNamed} more nodes</li>}
    </ul>
  );
}
