/** The changes that a pass is for, as spans: their traces go on into the pass, until what they want is in force. */
import { type Attributes, activeSpan, type Span, within } from '../../lib/trace.ts';

/** More changes go with a pass all the same, and are not named by it. */
const most = 16;

export class Causes {
  #waiting: Span[] = [];

  /** Notes the change that is being made, where it has a trace. */
  note(): void {
    const span = activeSpan();
    if (span) this.#add([span]);
  }

  /**
   * Runs a pass below the first change that waits, with links to the others, each of which gets a span for the same time. `body`
   * says what it found, and whether the changes go on waiting. Without any, it runs outside of all traces: it is routine.
   */
  async run<T>(
    name: string,
    attributes: Attributes,
    body: () => Promise<{ result: T; attributes: Attributes; failure?: string | undefined; isOpen: boolean }>,
  ): Promise<T> {
    const causes = this.#waiting;
    this.#waiting = [];
    const [first, ...others] = causes;
    const about = (cause: Span) => ({ ...attributes, 'andromeda.command_id': cause.shared.commandId });
    const span = first?.child(name, about(first), others);
    const joined = span ? others.map((cause) => cause.child(name, about(cause), [span])) : [];
    const outcome = await within(span, body);
    if (outcome.isOpen) this.#add(causes);
    for (const one of [span, ...joined]) {
      one?.set(outcome.attributes);
      one?.end(outcome.failure);
    }
    return outcome.result;
  }

  #add(spans: readonly Span[]): void {
    const known = new Set(this.#waiting.map(({ traceId }) => traceId));
    for (const span of spans) {
      if (this.#waiting.length >= most || known.has(span.traceId)) continue;
      known.add(span.traceId);
      this.#waiting.push(span);
    }
  }
}
