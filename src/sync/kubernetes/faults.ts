/** What keeps permissions from being applied, gathered over a pass and reported in few sentences. */
import {
  describeRight,
  type KubernetesError,
  meaningOf,
  type Refused,
} from '../../domain/kubernetes/status.ts';

export interface Faults {
  add(sentence: string, count?: number): void;
  /** Adds what a refusal means; `role` is the ClusterRole that was to be bound, `what` the thing that was refused. */
  refused(error: KubernetesError, about: { what: string; role?: string }): void;
  /** Whether a retry may help without anybody changing something. */
  mayPass(): boolean;
  /** All of it; undefined when nothing stands in the way. */
  text(): string | undefined;
}

const mostSentences = 10;
const passingKinds: readonly Refused['kind'][] = ['trouble', 'conflict', 'missing'];

export function createFaults(): Faults {
  const counts = new Map<string, number>();
  let passing = false;
  function add(sentence: string, count = 1): void {
    counts.set(sentence, (counts.get(sentence) ?? 0) + count);
  }
  return {
    add,
    refused(error, { what, role }) {
      const refusal = meaningOf(error, role);
      passing ||= passingKinds.includes(refusal.kind);
      switch (refusal.kind) {
        case 'credentials':
          // The token is the same in every request, so one message is enough.
          return void counts.set('The API server does not accept our credentials', 1);
        case 'right':
          return add(`Our credentials lack the right to ${describeRight(refusal.right)}`);
        case 'bind':
          return add(`Our credentials lack the right to bind the ClusterRole ${role}`);
        case 'role':
          return add(`There is no ClusterRole ${role}`);
        case 'namespace':
          return add(`The namespace of ${what} is ${refusal.state}`);
        case 'exists':
          return add(`${what} is there already and is not ours: remove it, or give it to nobody`);
        case 'conflict':
        case 'missing':
          return add(`${what} is changed by somebody else all the time`);
        case 'policy':
          return add(`The cluster refuses ${what}: ${refusal.message}`);
        case 'trouble':
          return add(`The API server is in trouble (${error.status}): ${refusal.message}`);
        case 'refused':
          return add(`The API server refuses ${what} (${error.status}): ${refusal.message}`);
      }
    },
    mayPass: () => passing,
    text() {
      if (counts.size === 0) return undefined;
      const sentences = [...counts].map(([sentence, count]) =>
        count === 1 ? `${sentence}.` : `${sentence} (${count} times).`,
      );
      const rest = sentences.length - mostSentences;
      return [...sentences.slice(0, mostSentences), ...(rest > 0 ? [`And ${rest} more.`] : [])].join(' ');
    },
  };
}
