/**
 * The channels of one relayed connection (RFC 4254, section 5). Their numbers pass through unchanged: the gateway
 * opens none of its own, so numbers of the client and of the login node never clash.
 */
export interface Channel {
  readonly type: string;
  /** The client's number: messages to the client carry it. */
  readonly client: number;
  /** The login node's number: messages to the node carry it. Unknown until the node has confirmed. */
  node: number | undefined;
  /** Bytes that the client still takes; the gateway's own notices use them too. */
  window: number;
  /** Bytes of the window that those notices used; subtracted from the next window adjustment to the node. */
  debt: number;
  /** Pending replies to the client's requests, in order: from the node, or a refusal of ours in the queue. */
  readonly pendingReplies: ('node' | 'refusal')[];
  closedByClient: boolean;
  closedByNode: boolean;
}

export class Channels {
  readonly #ofClient = new Map<number, Channel>();
  readonly #ofNode = new Map<number, Channel>();

  get size(): number {
    return this.#ofClient.size;
  }

  /** Returns false where the number is in use. */
  add(type: string, client: number, window: number): boolean {
    if (this.#ofClient.has(client)) return false;
    const fresh = {
      node: undefined,
      debt: 0,
      pendingReplies: [],
      closedByClient: false,
      closedByNode: false,
    };
    this.#ofClient.set(client, { type, client, window, ...fresh });
    return true;
  }

  /** Returns false where the number is in use. */
  confirm(channel: Channel, node: number): boolean {
    if (channel.node !== undefined || this.#ofNode.has(node)) return false;
    channel.node = node;
    this.#ofNode.set(node, channel);
    return true;
  }

  byClient(number: number): Channel | undefined {
    return this.#ofClient.get(number);
  }

  byNode(number: number): Channel | undefined {
    return this.#ofNode.get(number);
  }

  remove(channel: Channel): void {
    this.#ofClient.delete(channel.client);
    if (channel.node !== undefined) this.#ofNode.delete(channel.node);
  }

  open(): Channel[] {
    return [...this.#ofClient.values()].filter(
      ({ node, closedByNode }) => node !== undefined && !closedByNode,
    );
  }
}
