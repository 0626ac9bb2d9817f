/** The gateway processes that there are, written down for a service that starts after one that was cut off. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Member } from './member.ts';
import type { RunDirectory } from './run-directory.ts';

const pollMs = 10;
/** A process that was killed is gone within this. */
const killMs = 1_000;

export class Members {
  readonly #directory: RunDirectory;
  readonly #byPid = new Map<number, Member>();

  constructor(directory: RunDirectory) {
    this.#directory = directory;
  }

  get size(): number {
    return this.#byPid.size;
  }

  [Symbol.iterator](): Iterator<Member> {
    // A copy: a member may end while the others are asked.
    return [...this.#byPid.values()][Symbol.iterator]();
  }

  has(member: Member): boolean {
    return this.#byPid.get(member.pid) === member;
  }

  /** The living process of this PID, added if it is not known yet. `isFound`: it lived before this service did. */
  found(pid: number, isFound: boolean): Member {
    const known = this.#byPid.get(pid);
    if (known?.isAlive) return known;
    const member = new Member(pid, isFound);
    this.add(member);
    return member;
  }

  add(member: Member): void {
    this.#byPid.set(member.pid, member);
    this.remember();
  }

  delete(member: Member): void {
    this.#byPid.delete(member.pid);
    this.remember();
  }

  filter(matches: (member: Member) => boolean): Member[] {
    return [...this].filter(matches);
  }

  remember(): void {
    this.#directory.remember(
      [...this].flatMap(({ pid, startTime }) => (startTime === undefined ? [] : [{ pid, startTime }])),
    );
  }

  /** Waits until none of those that match lives, for at most `limitMs`. Returns those that do. */
  async awaitNone(limitMs: number, matches: (member: Member) => boolean = () => true): Promise<Member[]> {
    const left = () => this.filter((member) => member.isAlive && matches(member));
    const end = performance.now() + limitMs;
    while (left().length > 0 && performance.now() < end) await sleep(pollMs);
    return left();
  }

  /** Waits until all have ended; those that live after `limitMs` are killed. */
  async awaitEnds(limitMs: number): Promise<void> {
    for (const member of await this.awaitNone(limitMs)) member.kill();
    await this.awaitNone(killMs);
  }
}
