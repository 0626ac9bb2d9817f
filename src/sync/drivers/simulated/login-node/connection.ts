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

/** What a channel does with a request; true is success. */
export type RequestHandler = (type: string, details: WireReader) => boolean;

export interface ConnectionHandlers {
  /** Sessions come here, and forwardings; any other type is refused before. */
  open(request: OpenRequest): void;
  request(channel: Channel, type: string, details: WireReader): boolean;
}

export interface ConnectionLayer {
  receive(message: Buffer): void;
  /** The socket is gone: every channel ends. */
  lost(): void;
}

export function connectionLayer(
  transport: Transport,
  socket: Socket,
  handlers: ConnectionHandlers,
): ConnectionLayer {
  const channels = new Map<number, Channel>();
  let nextId = 0;
  let pending = 0;
  let alive = true;
  socket.on('drain', () => {
    for (const channel of channels.values()) channel.pump();
  });

  function open(message: WireReader): void {
    const type = message.text();
    const remote = { id: message.uint32(), window: message.uint32(), packet: message.uint32() };
    const fail = (reason: number, description: string) =>
      transport.channelOpenFail(remote.id, reason, description);
    if (type !== 'session' && type !== 'direct-tcpip') {
      const forwarding = type.startsWith('direct-') || type.startsWith('forwarded-');
      fail(forwarding ? OPEN_FAILURE.PROHIBITED : OPEN_FAILURE.UNKNOWN_TYPE, `${type} is not possible here`);
      return;
    }
    if (channels.size + pending >= maxChannels) {
      fail(OPEN_FAILURE.RESOURCE_SHORTAGE, 'too many channels');
      return;
    }
    pending += 1;
    let answered = false;
    const answer = () => {
      if (answered) return false;
      answered = true;
      pending -= 1;
      return alive;
    };
    handlers.open({
      type,
      details: message,
      accept() {
        if (!answer()) return undefined;
        const local = nextId++;
        const channel = new Channel(transport, socket, remote, () => channels.delete(local));
        channels.set(local, channel);
        transport.channelOpenConfirm(remote.id, local, receiveWindow, maxPacket);
        return channel;
      },
      refuse(reason, description) {
        if (answer()) fail(reason, description);
      },
    });
  }

  function toChannel(type: number, message: WireReader): void {
    const id = message.uint32();
    const channel = channels.get(id);
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
        channel.reply(wantReply, handlers.request(channel, request, message));
      }
    }
  }

  return {
    receive(bytes) {
      const message = new WireReader(bytes);
      const type = message.byte();
      switch (type) {
        case SSH.GLOBAL_REQUEST: {
          // Remote forwarding and everything else is refused; this refusal also answers keepalives.
          message.text();
          if (message.bool()) transport.requestFailure();
          return;
        }
        case SSH.CHANNEL_OPEN:
          return open(message);
        case SSH.CHANNEL_WINDOW_ADJUST:
        case SSH.CHANNEL_DATA:
        case SSH.CHANNEL_EOF:
        case SSH.CHANNEL_CLOSE:
        case SSH.CHANNEL_REQUEST:
          return toChannel(type, message);
        // Others need no answer: replies to ssh2's keepalives, data for stderr, and replies to what is never asked here.
      }
    },
    lost() {
      alive = false;
      for (const channel of [...channels.values()]) channel.end(false);
    },
  };
}
