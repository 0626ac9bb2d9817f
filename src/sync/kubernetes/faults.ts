/** What keeps permissions from being applied, gathered over a pass and reported in few sentences. */
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

  /** Adds what a refusal means; `role` is the ClusterRole that was to be bound, `what` the thing that was refused. */
  refused(error: KubernetesError, about: { what: string; role?: string }): void {
    const refusal = meaningOf(error, about.role);
    this.mayPass ||= passingKinds.includes(refusal.kind);
    const sentence = sentenceOf(refusal, error.status, about);
    // What is the same for all requests is said once.
    if (refusal.kind === 'credentials' || refusal.kind === 'trouble') this.#counts.set(sentence, 1);
    else this.add(sentence);
  }

  text(): string | null {
    if (this.#counts.size === 0) return null;
    // In the same order each time: a new text is reported anew.
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
