/** Collects the faults of a pass that keep permissions from being applied, and reports them in a few sentences. */
import {
  describeRight,
  type KubernetesError,
  meaningOf,
  type Refused,
} from '../../domain/kubernetes/status.ts';

const mostSentences = 10;
const passingKinds: readonly Refused['kind'][] = ['trouble', 'conflict', 'missing'];

export class Faults {
  readonly #counts = new Map<string, number>();
  /** Whether a retry may help without anybody changing something. */
  mayPass = false;

  add(sentence: string): void {
    this.#counts.set(sentence, (this.#counts.get(sentence) ?? 0) + 1);
  }

  failed(why: string): void {
    this.mayPass = true;
    this.#counts.set(`A change could not be made: ${why}`, 1);
  }

  /** Adds the meaning of a refusal. `role`: the ClusterRole to bind; `what`: the refused object. */
  refused(error: KubernetesError, about: { what: string; role?: string }): void {
    const refusal = meaningOf(error, about.role);
    this.mayPass ||= passingKinds.includes(refusal.kind);
    const sentence = sentenceOf(refusal, error.status, about);
    // These faults concern all requests alike, and are reported once.
    if (refusal.kind === 'credentials' || refusal.kind === 'trouble') this.#counts.set(sentence, 1);
    else this.add(sentence);
  }

  text(): string | null {
    if (this.#counts.size === 0) return null;
    // Sorted, because a different text would be reported as a new failure.
    const sentences = [...this.#counts]
      .map(([sentence, count]) => (count === 1 ? `${sentence}.` : `${sentence} (${count} times).`))
      .sort();
    const rest = sentences.length - mostSentences;
    return [...sentences.slice(0, mostSentences), ...(rest > 0 ? [`And ${rest} more.`] : [])].join(' ');
  }
}

function sentenceOf(
  refusal: Refused,
  status: number,
  { what, role }: { what: string; role?: string },
): string {
  switch (refusal.kind) {
    case 'credentials':
      return 'The API server does not accept our credentials';
    case 'right':
      return `Our credentials lack the right to ${describeRight(refusal.right)}`;
    case 'bind':
      return `Our credentials lack the right to bind the ClusterRole ${role}`;
    case 'role':
      return `There is no ClusterRole ${role}`;
    case 'namespace':
      return `The namespace of ${what} is ${refusal.state}`;
    case 'exists':
      return `${what} is there already and is not ours: remove it, or give it to nobody`;
    case 'conflict':
    case 'missing':
      return `${what} is changed by somebody else all the time`;
    case 'policy':
      return `The cluster refuses ${what}: ${refusal.message}`;
    case 'trouble':
      return `The API server is in trouble (${status}): ${refusal.message}`;
    case 'refused':
      return `The API server refuses ${what} (${status}): ${refusal.message}`;
  }
}
