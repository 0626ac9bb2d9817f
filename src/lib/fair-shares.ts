/**
 * Slots that many want at once, such as for logins in progress or passwords that are checked, in fair shares by source: one
 * that has many keeps out none that has few. Known sources go first, and strangers cannot take every slot. Bounded in
 * slots and in what waits; time is used only to end a wait.
 */

export interface Shares {
  slots: number;
  /** Of those, how many strangers may have. */
  slotsOfUnknown: number;
  /** What waits for a slot, in all and of one source. */
  waiting: number;
  waitingPerSource: number;
  /** Nothing waits for longer. */
  waitMs: number;
}

export interface Claim {
  readonly source: string;
  /** Not a stranger, such as a source that logged in lately; may become true while the claim waits. */
  readonly isKnown: boolean;
  readonly most: number;
  start(): void;
  /** It gets no slot, or has lost the one that it had: once, and there is nothing to leave any more. */
  giveWay(): void;
  /** Whether its source has spent nothing on the slot so far. Left out where a slot cannot be taken back. */
  isIdle?(): boolean;
}

export class FairShares {
  #shares: Shares;
  /** The oldest first, and whether each was a stranger when it got its slot. */
  readonly #holders = new Map<Claim, boolean>();
  readonly #slotsBySource = new Map<string, number>();
  #unknown = 0;
  /** What waits, by source: the source whose turn is next comes first. */
  readonly #queues = new Map<string, Claim[]>();
  readonly #timers = new Map<Claim, NodeJS.Timeout>();

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  /** Other bounds from now on. What has a slot keeps it. */
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
   * Takes a slot from a source that has more of them: an idle one first, then of a stranger, of the source that has most, and
   * the oldest of those. Known ones give way to known ones only. Where less than half are idle, it is one of the others: what
   * has just started is idle, and would be displaced by whatever comes next.
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

  /** Whether it may wait, for which the newest of a source with more that wait may have to give way. */
  #mayWait({ source, isKnown }: Claim): boolean {
    const { waiting, waitingPerSource } = this.#shares;
    const own = this.#queues.get(source)?.length ?? 0;
    if (own >= waitingPerSource) return false;
    if (this.#timers.size < waiting) return true;
    let longest: Claim[] = [];
    let highest = 0;
    for (const queue of this.#queues.values()) {
      const isUnknown = !queue[0]?.isKnown;
      // Strangers give way to known sources and never the other way round; among equals who has more waiting.
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
      // The others of its source wait until every other source had its turn.
      const rest = this.#queues.get(next.source);
      if (rest && this.#queues.delete(next.source)) this.#queues.set(next.source, rest);
      this.#give(next);
    }
  }

  /** A known source that has no slot, else the source that has fewest, else whose turn it is. */
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
