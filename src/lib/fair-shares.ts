/**
 * Fair shares of limited slots by source, such as of logins in progress or password checks: a source with many claims
 * does not keep out one with few. Known sources go first, and unknown ones cannot take every slot. Slots and queues
 * are bounded; timers only end a wait.
 */

export interface Shares {
  slots: number;
  /** How many of the slots unknown sources may have. */
  slotsOfUnknown: number;
  /** Limits of the queue, in total and for one source. */
  waiting: number;
  waitingPerSource: number;
  /** The longest wait. */
  waitMs: number;
}

export interface Claim {
  readonly source: string;
  /** True for a known source, such as one of a recent login; may become true while the claim waits. */
  readonly isKnown: boolean;
  readonly most: number;
  start(): void;
  /** The claim gets no slot, or has lost the one that it had. Called once; `leave` is not needed afterwards. */
  giveWay(): void;
  /** True if its source has spent nothing on the slot so far. Left out where a slot cannot be taken back. */
  isIdle?(): boolean;
}

export class FairShares {
  #shares: Shares;
  /** The claims with a slot, oldest first, and whether each was unknown when it got the slot. */
  readonly #holders = new Map<Claim, boolean>();
  readonly #slotsBySource = new Map<string, number>();
  #unknown = 0;
  /** Waiting claims by source: the source whose turn is next comes first. */
  readonly #queues = new Map<string, Claim[]>();
  readonly #timers = new Map<Claim, NodeJS.Timeout>();

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  /** Applies other limits. Claims with a slot keep it. */
  configure(shares: Shares): void {
    this.#shares = shares;
    this.#fill();
  }

  /** Calls `start` or `giveWay`, at once or later. */
  enter(claim: Claim): void {
    const mayHaveOne = this.#slotsOf(claim.source) < claim.most;
    if (mayHaveOne && (this.#hasFreeSlot(claim) || this.#displaceFor(claim))) this.#give(claim);
    else if (this.#mayWait(claim)) this.#wait(claim);
    else claim.giveWay();
  }

  leave(claim: Claim): void {
    if (this.#forget(claim)) this.#fill();
    else this.#dequeue(claim);
  }

  clear(): void {
    for (const claim of [...this.#timers.keys()]) {
      this.#dequeue(claim);
      claim.giveWay();
    }
  }

  #slotsOf(source: string): number {
    return this.#slotsBySource.get(source) ?? 0;
  }

  #hasFreeSlot({ isKnown }: Claim): boolean {
    const { slots, slotsOfUnknown } = this.#shares;
    return this.#holders.size < slots && (isKnown || this.#unknown < slotsOfUnknown);
  }

  #give(claim: Claim): void {
    this.#holders.set(claim, !claim.isKnown);
    this.#slotsBySource.set(claim.source, this.#slotsOf(claim.source) + 1);
    if (!claim.isKnown) this.#unknown += 1;
    claim.start();
  }

  #forget(claim: Claim): boolean {
    const wasUnknown = this.#holders.get(claim);
    if (wasUnknown === undefined) return false;
    this.#holders.delete(claim);
    const left = this.#slotsOf(claim.source) - 1;
    if (left > 0) this.#slotsBySource.set(claim.source, left);
    else this.#slotsBySource.delete(claim.source);
    if (wasUnknown) this.#unknown -= 1;
    return true;
  }

  /**
   * Takes a slot from a source that has more of them: an idle claim first, then of an unknown source, of the source
   * with most slots, and the oldest of those. Known sources give way to known ones only. Where less than half are
   * idle, a busy claim gives way: one that has just started is idle, and would be displaced by the next to come.
   */
  #displaceFor({ source, isKnown }: Claim): boolean {
    const own = this.#slotsOf(source);
    const mayGiveWay = [...this.#holders.keys()].filter(
      (one) => one.isIdle && this.#slotsOf(one.source) > own && (isKnown || !one.isKnown),
    );
    const idle = mayGiveWay.filter((one) => one.isIdle?.());
    const candidates =
      2 * idle.length < mayGiveWay.length ? mayGiveWay.filter((one) => !one.isIdle?.()) : idle;
    let chosen: Claim | undefined;
    let highest = 0;
    for (const one of candidates) {
      const rank = (one.isKnown ? 0 : 1e9) + this.#slotsOf(one.source);
      if (rank <= highest) continue;
      [chosen, highest] = [one, rank];
    }
    if (!chosen) return false;
    this.#forget(chosen);
    chosen.giveWay();
    return true;
  }

  /** Returns true if the claim may wait; for that, the newest claim of a source with more waiting ones may have to give way. */
  #mayWait({ source, isKnown }: Claim): boolean {
    const { waiting, waitingPerSource } = this.#shares;
    const own = this.#queues.get(source)?.length ?? 0;
    if (own >= waitingPerSource) return false;
    if (this.#timers.size < waiting) return true;
    let longest: Claim[] = [];
    let highest = 0;
    for (const queue of this.#queues.values()) {
      const isUnknown = !queue[0]?.isKnown;
      // Unknown sources give way to known ones, never the other way round; among equals the one with more waiting
      // claims.
      const givesWay = isUnknown === isKnown ? isUnknown : queue.length > own;
      if (!givesWay) continue;
      const rank = (isUnknown ? 1e9 : 0) + queue.length;
      if (rank > highest) [longest, highest] = [queue, rank];
    }
    const last = longest.at(-1);
    if (!last) return false;
    this.#dequeue(last);
    last.giveWay();
    return true;
  }

  #wait(claim: Claim): void {
    const queue = this.#queues.get(claim.source) ?? [];
    queue.push(claim);
    this.#queues.set(claim.source, queue);
    const onLate = () => {
      this.#dequeue(claim);
      claim.giveWay();
    };
    this.#timers.set(claim, setTimeout(onLate, this.#shares.waitMs).unref());
  }

  #dequeue(claim: Claim): void {
    const queue = this.#queues.get(claim.source);
    const at = queue?.indexOf(claim) ?? -1;
    if (!queue || at < 0) return;
    clearTimeout(this.#timers.get(claim));
    this.#timers.delete(claim);
    queue.splice(at, 1);
    if (queue.length === 0) this.#queues.delete(claim.source);
  }

  #fill(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      this.#dequeue(next);
      // The other claims of this source wait until every other source had its turn.
      const rest = this.#queues.get(next.source);
      if (rest && this.#queues.delete(next.source)) this.#queues.set(next.source, rest);
      this.#give(next);
    }
  }

  /** The first claim of a known source without a slot, else of the source with fewest slots, else of the next in turn. */
  #next(): Claim | undefined {
    let next: Claim | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const [first] of this.#queues.values()) {
      if (!first || !this.#hasFreeSlot(first)) continue;
      const slots = this.#slotsOf(first.source);
      if (first.isKnown && slots === 0) return first;
      if (slots < Math.min(fewest, first.most)) [next, fewest] = [first, slots];
    }
    return next;
  }
}
