/**
 * The other servers on the same database: which of them leads what one server at a time does, and what is asked of all of them.
 * Only this folder and the store know whether there can be any.
 */
import type { Messages } from '../../../store/engine/messages.ts';
import type { Leases } from '../../../store/servers/leases.ts';

/** What one of the others answers: one part or several, each small enough for a message. */
export type Answers = readonly object[];

export interface Peers extends Messages {
  /** For what one server at a time does. */
  readonly leases: Leases;
  /** Why this server does not serve, where its clock is too far off. */
  readonly clockFault: string | undefined;
  /** Asks all others; the answers that came within `timeoutMs`, together. It never fails. */
  ask(topic: string, body: object, timeoutMs: number): Promise<unknown[]>;
  answer(topic: string, answerTo: (body: unknown) => Promise<Answers>): void;
  /** Makes what only other servers need: undefined where there can be none. */
  forOthers<T>(make: () => T): T | undefined;
  /** Leaves to the others what is left. */
  stop(): Promise<void>;
}
