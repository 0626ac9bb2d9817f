/** The connection protocol of one authenticated client: its table of channels and the messages between. */
import type { Socket } from 'node:net';
import { OPEN_FAILURE, SSH } from '../../../../ssh/message-numbers.ts';
import { WireReader } from '../../../../ssh/wire.ts';
import { Channel, maxPacket, receiveWindow } from './channel.ts';
import type { Transport } from './transport.ts';

const maxChannels = 256;

export interface OpenRequest {
  type: string;
  /** The rest of the message, as the type defines it. */
  details: WireReader;
  /** Opens the channel; undefined when the client is gone by now. */
  accept(): Channel | undefined;
  refuse(reason: number, description: string): void;
}

export interface ConnectionHandlers {
  /** Sessions come here, and forwardings; any other type is refused before. */
  open(request: OpenRequest): void;
  /** A request on an open channel; true is success. */
  request(channel: Channel, type: string, details: WireReader): boolean;
}

export class ConnectionLayer {
  readonly #transport: Transport;
  readonly #socket: Socket;
  readonly #handlers: ConnectionHandlers;
  readonly #channels = new Map<number, Channel>();
  #nextId = 0;
  #pending = 0;
  #alive = true;

  constructor(transport: Transport, socket: Socket, handlers: ConnectionHandlers) {
    this.#transport = transport;
    this.#socket = socket;
    this.#handlers = handlers;
    socket.on('drain', () => {
      for (const channel of this.#channels.values()) channel.pump();
    });
  }

  /** Takes one message. Throws when it breaks the protocol. */
  receive(bytes: Buffer): void {
    const message = new WireReader(bytes);
    const type = message.byte();
    switch (type) {
      case SSH.GLOBAL_REQUEST: {
        // Remote forwarding and everything else is refused; this refusal also answers keepalives.
        message.text();
        if (message.bool()) this.#transport.requestFailure();
        return;
      }
      case SSH.CHANNEL_OPEN:
        this.#open(message);
        return;
      case SSH.CHANNEL_WINDOW_ADJUST:
      case SSH.CHANNEL_DATA:
      case SSH.CHANNEL_EOF:
      case SSH.CHANNEL_CLOSE:
      case SSH.CHANNEL_REQUEST:
        this.#toChannel(type, message);
        return;
      // Others need no answer: replies to ssh2's keepalives, data for stderr, and replies to what is never asked here.
    }
  }

  /** The socket is gone: every channel ends. */
  lost(): void {
    this.#alive = false;
    for (const channel of [...this.#channels.values()]) channel.end(false);
  }

  #open(message: WireReader): void {
    const type = message.text();
    const remote = { id: message.uint32(), window: message.uint32(), packet: message.uint32() };
    const fail = (reason: number, description: string) =>
      this.#transport.channelOpenFail(remote.id, reason, description);
    if (type !== 'session' && type !== 'direct-tcpip') {
      const forwarding = type.startsWith('direct-') || type.startsWith('forwarded-');
      fail(forwarding ? OPEN_FAILURE.PROHIBITED : OPEN_FAILURE.UNKNOWN_TYPE, `${type} is not possible here`);
      return;
    }
    if (this.#channels.size + this.#pending >= maxChannels) {
      fail(OPEN_FAILURE.RESOURCE_SHORTAGE, 'too many channels');
      return;
    }
    this.#pending += 1;
    let answered = false;
    const answer = () => {
      if (answered) return false;
      answered = true;
      this.#pending -= 1;
      return this.#alive;
    };
    this.#handlers.open({
      type,
      details: message,
      accept: () => (answer() ? this.#accept(remote) : undefined),
      refuse(reason, description) {
        if (answer()) fail(reason, description);
      },
    });
  }

  #accept(remote: { id: number; window: number; packet: number }): Channel {
    const local = this.#nextId++;
    const channel = new Channel(this.#transport, this.#socket, remote, () => this.#channels.delete(local));
    this.#channels.set(local, channel);
    this.#transport.channelOpenConfirm(remote.id, local, receiveWindow, maxPacket);
    return channel;
  }

  #toChannel(type: number, message: WireReader): void {
    const id = message.uint32();
    const channel = this.#channels.get(id);
    if (!channel) throw new RangeError(`message ${type} for channel ${id}, which is not open`);
    switch (type) {
      case SSH.CHANNEL_WINDOW_ADJUST:
        channel.receiveWindowAdjust(message.uint32());
        return;
      case SSH.CHANNEL_DATA:
        channel.receiveData(message.bytes());
        return;
      case SSH.CHANNEL_EOF:
        channel.receiveEof();
        return;
      case SSH.CHANNEL_CLOSE:
        channel.end(true);
        return;
      case SSH.CHANNEL_REQUEST: {
        const request = message.text();
        const wantReply = message.bool();
        channel.reply(wantReply, this.#handlers.request(channel, request, message));
      }
    }
  }
}
