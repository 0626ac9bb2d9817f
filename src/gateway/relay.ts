/**
 * Relays the connection protocol (RFC 4254) between a person and a login node, message by message: windows, EOF,
 * half-close, exit status, signals and order stay between the two ends. What asks for something goes past the policy.
 * Requests of the connection as a whole are answered here by whom they were put to, so their answers keep order.
 */

import { OPEN_FAILURE, SSH } from '../ssh/message-numbers.ts';
import { message, WireError, WireReader } from '../ssh/wire.ts';
import { type Channel, createChannels } from './channels.ts';
import type { Use } from './events.ts';
import { execPart, linePieces } from './exec-line.ts';
import type { GatewayLimits } from './limits.ts';
import {
  channelFailure,
  debugMessage,
  keepalive,
  openFailure,
  requestFailure,
  standardError,
} from './messages.ts';
import { type Ask, judge, noticeLength, printable, type Side, type Verdict } from './policy.ts';
import type { Transport } from './transport.ts';

export interface RelayOptions {
  client: Transport;
  node: Transport;
  limits: GatewayLimits;
  /** The person's login shell as it is now. */
  shell(): string;
  onRefusal(side: Side, reason: string): void;
  /** The client asked for this, and it was passed on. */
  onUse(use: Use): void;
}

export interface Relay {
  readonly channels: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** Puts a line on the standard error of every open session; says whether there was one that took it. */
  tell(notice: string): boolean;
  /** Tells it, passes nothing on from then on, and calls `onHeard` when the client has read that far. */
  endWith(notice: string, onHeard: () => void): boolean;
}

/** Takes over both transports. */
export function startRelay({ client, node, limits, shell, onRefusal, onUse }: RelayOptions): Relay {
  const channels = createChannels();
  let doorClosed = false;
  let ended = false;
  let bytesUp = 0;
  let bytesDown = 0;

  // What a handler throws ends the transport that delivered the message: it broke the protocol.
  client.onMessage = fromClient;
  node.onMessage = (payload) => ended || fromNode(payload);
  client.onRoom = () => node.resume();
  node.onRoom = () => client.resume();

  function toNode(payload: Buffer) {
    node.forward(client, payload);
    if (node.full) client.pause();
  }

  function toClient(payload: Buffer) {
    client.forward(node, payload);
    if (client.full) node.pause();
  }

  function ask(side: Side, what: Ask): Verdict {
    const verdict = judge(side, what, shell());
    if (verdict.do === 'refuse') {
      onRefusal(side, verdict.reason);
      // The reason of a refused channel goes with the answer.
      if (side === 'client' && what.kind !== 'open') client.send(debugMessage(verdict.reason));
    }
    return verdict;
  }

  function fromClient(payload: Buffer) {
    const type = payload[0] ?? 0;
    // Late requests of the login that has succeeded are to be ignored (RFC 4252, section 5.1).
    if (type < SSH.GLOBAL_REQUEST) return;
    if (type === SSH.GLOBAL_REQUEST) return globalRequest('client', payload);
    if (type === SSH.CHANNEL_OPEN) return openFromClient(payload);
    if (type === SSH.REQUEST_SUCCESS || type === SSH.REQUEST_FAILURE) return;
    const channel = known(channels.byNode(recipient(payload)));
    if (channel.closedByClient) throw new WireError('message on a closed channel');
    switch (type) {
      case SSH.CHANNEL_DATA:
      case SSH.CHANNEL_EXTENDED_DATA:
        bytesUp += payload.length;
        return toNode(payload);
      case SSH.CHANNEL_WINDOW_ADJUST:
        return widen(channel, payload);
      case SSH.CHANNEL_EOF:
        return toNode(payload);
      case SSH.CHANNEL_CLOSE:
        channel.closedByClient = true;
        if (channel.closedByNode) channels.remove(channel);
        return toNode(payload);
      case SSH.CHANNEL_REQUEST:
        return requestFromClient(channel, payload);
      case SSH.CHANNEL_SUCCESS:
      case SSH.CHANNEL_FAILURE:
        // The node's requests that want an answer were answered here.
        return;
      default:
        client.refuseMessage();
    }
  }

  function fromNode(payload: Buffer) {
    const type = payload[0] ?? 0;
    if (type < SSH.GLOBAL_REQUEST) return;
    if (type === SSH.GLOBAL_REQUEST) return globalRequest('node', payload);
    if (type === SSH.CHANNEL_OPEN) return openFromNode(payload);
    if (type === SSH.REQUEST_SUCCESS || type === SSH.REQUEST_FAILURE) return;
    const channel = known(channels.byClient(recipient(payload)));
    if (channel.closedByNode) throw new WireError('message on a closed channel');
    switch (type) {
      case SSH.CHANNEL_DATA:
        channel.window -= payload.length - 9;
        bytesDown += payload.length;
        return toClient(payload);
      case SSH.CHANNEL_EXTENDED_DATA:
        channel.window -= payload.length - 13;
        bytesDown += payload.length;
        return toClient(payload);
      case SSH.CHANNEL_WINDOW_ADJUST:
      case SSH.CHANNEL_EOF:
        return toClient(payload);
      case SSH.CHANNEL_CLOSE:
        channel.closedByNode = true;
        if (channel.closedByClient) channels.remove(channel);
        return toClient(payload);
      case SSH.CHANNEL_OPEN_CONFIRMATION:
        if (!channels.confirm(channel, new WireReader(payload, 5).uint32()))
          throw new WireError('channel number in use');
        return toClient(payload);
      case SSH.CHANNEL_OPEN_FAILURE:
        if (channel.node !== undefined) throw new WireError('the channel is open');
        channels.remove(channel);
        return toClient(payload);
      case SSH.CHANNEL_REQUEST:
        return requestFromNode(channel, payload);
      case SSH.CHANNEL_SUCCESS:
      case SSH.CHANNEL_FAILURE:
        if (channel.owed.shift() !== 'node') throw new WireError('an answer to no request');
        toClient(payload);
        while (channel.owed[0] === 'refusal') {
          channel.owed.shift();
          client.send(channelFailure(channel.client));
        }
        return;
      default:
        node.refuseMessage();
    }
  }

  /** What the client takes more, less what our own notices took of it. */
  function widen(channel: Channel, payload: Buffer) {
    const bytes = new WireReader(payload, 5).uint32();
    channel.window += bytes;
    if (channel.debt === 0) return toNode(payload);
    const paid = Math.min(channel.debt, bytes);
    channel.debt -= paid;
    const to = { uint32: channel.node ?? 0 };
    node.send(message(SSH.CHANNEL_WINDOW_ADJUST, to, { uint32: bytes - paid }));
  }

  function globalRequest(side: Side, payload: Buffer) {
    const fields = new WireReader(payload, 1);
    const name = fields.text();
    const wantsReply = fields.bool();
    const verdict = ask(side, { kind: 'global', name });
    if (verdict.do === 'close-door') doorClosed = true;
    if (wantsReply) (side === 'client' ? client : node).send(requestFailure());
  }

  function openFromClient(payload: Buffer) {
    const fields = new WireReader(payload, 1);
    const type = fields.text();
    const number = fields.uint32();
    const window = fields.uint32();
    fields.uint32();
    const target = type === 'direct-tcpip' ? { host: fields.text(), port: fields.uint32() } : {};
    const verdict = ask('client', { kind: 'open', type, ...target });
    if (verdict.do !== 'allow') {
      const why = verdict.do === 'refuse' ? verdict.reason : 'refused';
      client.send(openFailure(number, OPEN_FAILURE.PROHIBITED, why));
    } else if (type === 'session' && doorClosed) {
      client.send(openFailure(number, OPEN_FAILURE.PROHIBITED, 'no more sessions, as was asked for'));
    } else if (channels.size >= limits.maxChannels) {
      client.send(openFailure(number, OPEN_FAILURE.RESOURCE_SHORTAGE, 'too many channels on one connection'));
    } else {
      if (!channels.add(type, number, window)) throw new WireError('channel number in use');
      if (target.host !== undefined) onUse({ kind: 'forward', to: `${target.host}:${target.port}` });
      toNode(payload);
    }
  }

  function openFromNode(payload: Buffer) {
    const fields = new WireReader(payload, 1);
    const type = fields.text();
    const verdict = ask('node', { kind: 'open', type });
    const why = verdict.do === 'refuse' ? verdict.reason : 'refused';
    node.send(openFailure(fields.uint32(), OPEN_FAILURE.PROHIBITED, why));
  }

  function requestFromClient(channel: Channel, payload: Buffer) {
    const fields = new WireReader(payload, 5);
    const name = fields.text();
    const wantsReply = fields.bool();
    const argument = argumentOf(name, fields);
    const verdict = ask('client', { kind: 'request', channel: channel.type, name, ...argument });
    if (wantsReply && channel.owed.length >= limits.maxPendingReplies)
      throw new WireError('too many requests wait for an answer');
    if (verdict.do === 'allow') {
      if (wantsReply) channel.owed.push('node');
      if (name === 'subsystem') onUse({ kind: 'sftp' });
      toNode(payload);
    } else if (verdict.do === 'exec') {
      if (wantsReply) channel.owed.push('node');
      onUse(name === 'exec' ? { kind: 'exec', command: argument.command ?? '' } : { kind: 'shell' });
      const to = { uint32: channel.node ?? 0 };
      const pieces = linePieces(verdict.command, node.software).map((piece) => Buffer.from(piece, 'latin1'));
      const last = pieces.pop() ?? Buffer.alloc(0);
      for (const piece of pieces) node.send(message(SSH.CHANNEL_REQUEST, to, execPart, false, piece));
      node.send(message(SSH.CHANNEL_REQUEST, to, 'exec', wantsReply, last));
    } else {
      if (!wantsReply) return;
      if (channel.owed.length > 0) channel.owed.push('refusal');
      else client.send(channelFailure(channel.client));
    }
  }

  function requestFromNode(channel: Channel, payload: Buffer) {
    const fields = new WireReader(payload, 5);
    const name = fields.text();
    const wantsReply = fields.bool();
    const verdict = ask('node', { kind: 'request', channel: channel.type, name });
    if (verdict.do === 'allow') toClient(payload);
    if (wantsReply && channel.node !== undefined) node.send(channelFailure(channel.node));
  }

  return {
    get channels() {
      return channels.size;
    },
    get bytesUp() {
      return bytesUp;
    },
    get bytesDown() {
      return bytesDown;
    },
    tell,
    endWith(notice, onHeard) {
      ended = true;
      client.onMessage = ([type]) => {
        if (type === SSH.REQUEST_SUCCESS || type === SSH.REQUEST_FAILURE) onHeard();
      };
      const told = tell(notice);
      if (told) client.send(keepalive());
      return told;
    },
  };

  function tell(notice: string): boolean {
    const line = `\r\n${printable(notice, noticeLength)}\r\n`;
    const told = channels.open().filter(({ type, window }) => type === 'session' && window >= line.length);
    for (const channel of told) {
      channel.window -= line.length;
      channel.debt += line.length;
      client.send(standardError(channel.client, line));
    }
    return told.length > 0;
  }
}

const recipient = (payload: Buffer) => {
  if (payload.length < 5) throw new WireError('message ends too soon');
  return payload.readUInt32BE(1);
};

function known(channel: Channel | undefined): Channel {
  if (!channel) throw new WireError('no such channel');
  return channel;
}

/** What the policy wants to know of a request: a command is bytes, read as latin1. */
function argumentOf(name: string, fields: WireReader): { command?: string; subsystem?: string } {
  if (name === 'exec') return { command: fields.bytes().toString('latin1') };
  if (name === 'subsystem') return { subsystem: fields.text() };
  return {};
}
