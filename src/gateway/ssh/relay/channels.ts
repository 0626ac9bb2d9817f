/**
 * The channels of one relayed connection (RFC 4254, section 5). Their numbers pass through unchanged: the gateway opens
 * none of its own, so what the client calls a channel and what the login node calls it never clash.
 */
export interface Channel {
  readonly type: string;
  /** The client's number: messages to the client carry it. */
  readonly client: number;
  /** The login node's number: messages to the node carry it. Unknown until the node has confirmed. */
  node: number | undefined;
  /** Bytes the client still takes, for the notices that the gateway itself puts in. */
  window: number;
  /** Bytes of it that those notices took, which the next window adjustment to the node leaves out. */
  debt: number;
  /** Replies to the client's requests that are outstanding, in order: from the node, or a refusal of ours in the queue. */
  readonly pendingReplies: ('node' | 'refusal')[];
  closedByClient: boolean;
  closedByNode: boolean;
}

export interface Channels {
  readonly size: number;
  add(type: string, client: number, window: number): Channel | undefined;
  confirm(channel: Channel, node: number): boolean;
  byClient(number: number): Channel | undefined;
  byNode(number: number): Channel | undefined;
  remove(channel: Channel): void;
  open(): Channel[];
}

/** An empty table. `add` and `confirm` refuse a number that is in use. */
export function createChannels(): Channels {
  const ofClient = new Map<number, Channel>();
  const ofNode = new Map<number, Channel>();
  return {
    get size() {
      return ofClient.size;
    },
    add(type, client, window) {
      if (ofClient.has(client)) return undefined;
      const channel: Channel = {
        type,
        client,
        window,
        debt: 0,
        node: undefined,
        pendingReplies: [],
        closedByClient: false,
        closedByNode: false,
      };
      ofClient.set(client, channel);
      return channel;
    },
    confirm(channel, node) {
      if (channel.node !== undefined || ofNode.has(node)) return false;
      channel.node = node;
      ofNode.set(node, channel);
      return true;
    },
    byClient: (number) => ofClient.get(number),
    byNode: (number) => ofNode.get(number),
    remove(channel) {
      ofClient.delete(channel.client);
      if (channel.node !== undefined) ofNode.delete(channel.node);
    },
    open: () =>
      [...ofClient.values()].filter((channel) => channel.node !== undefined && !channel.closedByNode),
  };
}
