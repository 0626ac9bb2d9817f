/**
 * The other servers on the same database: which of them leads, and questions to all of them. Only this folder and the
 * store know whether there can be any.
 */
import type { Lead } from '../../../store/servers/leader.ts';
import type { LeaderWork } from './leading.ts';

/** One server's answer to a question: one part or several, each small enough for a message. */
export type Answers = readonly object[];

export interface Peers {
  /** The lead of this server, while it leads. */
  readonly lead: Lead | undefined;
  /** Runs `work` whenever this server leads. Returns a function that stops, and leaves the lead to another. */
  whileLeading(work: LeaderWork): () => Promise<void>;
  /** The reason why this server does not serve, where its clock is too far off. */
  readonly clockFault: string | undefined;
  /** Asks all others; resolves to the answers that came within `timeoutMs`. It never rejects. */
  ask(topic: string, body: object, timeoutMs: number): Promise<unknown[]>;
  answer(topic: string, answerTo: (body: unknown) => Promise<Answers>): void;
  /** Creates parts that only several servers need: undefined where there can be no others. */
  forOthers<T>(make: () => T): T | undefined;
  /** Leaves open work to the others. */
  stop(): Promise<void>;
}
