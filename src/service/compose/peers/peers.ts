/**
 * The other servers on the same database: which of them leads, and what is asked of all of them.
 * Only this folder and the store know whether there can be any.
 */
import type { Lead } from '../../../store/servers/leader.ts';
import type { LeaderWork } from './leading.ts';

/** What one of the others answers: one part or several, each small enough for a message. */
export type Answers = readonly object[];

export interface Peers {
  /** This server's, while it leads. */
  readonly lead: Lead | undefined;
  /** Does this whenever this server leads. Returns how to stop, which leaves the lead to another. */
  whileLeading(work: LeaderWork): () => Promise<void>;
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
