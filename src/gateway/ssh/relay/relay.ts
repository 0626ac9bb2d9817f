/**
 * Relays the connection protocol (RFC 4254) between a person and a login node, message by message: windows, EOF,
 * half-close, exit status, signals and order stay between the two ends. The policy decides about every request.
 * Global requests are answered here at once, so their answers keep order.
 */
import type { Logger } from '../../../lib/log.ts';
import { message, OPEN_FAILURE, SSH, WireError, WireReader } from '../../../lib/ssh/wire.ts';
import type { Route } from '../decision.ts';
import type { Use } from '../events.ts';
import type { GatewayLimits } from '../limits.ts';
import {
  channelFailure,
  debugMessage,
  keepalive,
  openFailure,
  requestFailure,
  standardError,
} from '../messages.ts';
import type { HostKeys } from '../transport/host-keys.ts';
import type { Transport } from '../transport/transport.ts';
import { type Channel, Channels } from './channels.ts';
import { execPart, linePieces } from './exec-line.ts';
import { type Ask, judge, noticeLength, printable, type Side, type Verdict } from './policy.ts';

export interface RelayOptions {
  client: Transport;
  node: Transport;
  limits: GatewayLimits;
  /** The gateway's host keys, of which the client may ask for proofs. */
  hostKeys: HostKeys;
  /** The current route; undefined before the login. */
  route(): Pick<Route, 'shell' | 'loginNode'> | undefined;
  onRefusal(side: Side, reason: string): void;
  /** Called for a request of the client that was passed on. */
  onUse(use: Use): void;
}

/** Takes over both transports and passes messages between them. */
export class Relay {
  bytesUp = 0;
  bytesDown = 0;
  readonly #options: RelayOptions;
  readonly #client: Transport;
  readonly #node: Transport;
  readonly #channels = new Channels();
  #noMoreSessions = false;
  #ended = false;

  constructor(options: RelayOptions) {
    const { client, node } = options;
    this.#options = options;
    this.#client = client;
    this.#node = node;
    // An exception in a handler ends the transport that delivered the message: its peer broke the protocol.
    client.onMessage = (payload) => this.#fromClient(payload);
    node.onMessage = (payload) => this.#ended || this.#fromNode(payload);
    client.onDrained = () => node.resume();
    node.onDrained = () => client.resume();
  }

  get channels(): number {
    return this.#channels.size;
  }

  /** Writes a line to the standard error of every open session; returns whether one of them had room for it. */
  notify(notice: string): boolean {
    const line = `\r\n${printable(notice, noticeLength)}\r\n`;
    const reached = this.#channels
      .open()
      .filter(({ type, window }) => type === 'session' && window >= line.length);
    for (const channel of reached) {
      channel.window -= line.length;
      channel.debt += line.length;
      this.#client.send(standardError(channel.client, line));
    }
    return reached.length > 0;
  }

  /** Sends the notice, passes on nothing after it, and calls `onRead` when the client has read it. */
  endWith(notice: string, onRead: () => void): boolean {
    this.#ended = true;
    this.#client.onMessage = ([type]) => {
      if (type === SSH.REQUEST_SUCCESS || type === SSH.REQUEST_FAILURE) onRead();
    };
    const reached = this.notify(notice);
    if (reached) this.#client.send(keepalive());
    return reached;
  }

  #toNode(payload: Buffer) {
    this.#node.forward(this.#client, payload);
    if (this.#node.full) this.#client.pause();
  }

  #toClient(payload: Buffer) {
    this.#client.forward(this.#node, payload);
    if (this.#client.full) this.#node.pause();
  }

  #ask(side: Side, what: Ask): Verdict {
    const { shell: path = '/bin/bash', loginNode } = this.#options.route() ?? {};
    const verdict = judge(side, what, { path, isOfAccount: loginNode?.hasShell === true });
    if (verdict.do === 'refuse') {
      this.#options.onRefusal(side, verdict.reason);
      // A refused channel gets the reason with its answer.
      if (side === 'client' && what.kind !== 'open') this.#client.send(debugMessage(verdict.reason));
    }
    return verdict;
  }

  #fromClient(payload: Buffer) {
    const type = payload[0] ?? 0;
    // Late requests of the login that has succeeded are to be ignored (RFC 4252, section 5.1).
    if (type < SSH.GLOBAL_REQUEST) return;
    if (type === SSH.GLOBAL_REQUEST) return this.#globalRequest('client', payload);
    if (type === SSH.CHANNEL_OPEN) return this.#openFromClient(payload);
    if (type === SSH.REQUEST_SUCCESS || type === SSH.REQUEST_FAILURE) return;
    const channel = known(this.#channels.byNode(recipient(payload)), type);
    if (!channel || channel.closedByClient) return;
    switch (type) {
      case SSH.CHANNEL_DATA:
      case SSH.CHANNEL_EXTENDED_DATA:
        this.bytesUp += payload.length;
        return this.#toNode(payload);
      case SSH.CHANNEL_WINDOW_ADJUST:
        return this.#widen(channel, payload);
      case SSH.CHANNEL_EOF:
        return this.#toNode(payload);
      case SSH.CHANNEL_CLOSE:
        channel.closedByClient = true;
        if (channel.closedByNode) this.#channels.remove(channel);
        return this.#toNode(payload);
      case SSH.CHANNEL_REQUEST:
        return this.#requestFromClient(channel, payload);
      case SSH.CHANNEL_SUCCESS:
      case SSH.CHANNEL_FAILURE:
        // The node's requests that want an answer were answered here.
        return;
      default:
        this.#client.refuseMessage();
    }
  }

  #fromNode(payload: Buffer) {
    const type = payload[0] ?? 0;
    if (type < SSH.GLOBAL_REQUEST) return;
    if (type === SSH.GLOBAL_REQUEST) return this.#globalRequest('node', payload);
    if (type === SSH.CHANNEL_OPEN) return this.#openFromNode(payload);
    if (type === SSH.REQUEST_SUCCESS || type === SSH.REQUEST_FAILURE) return;
    const channel = known(this.#channels.byClient(recipient(payload)), type);
    if (!channel || channel.closedByNode) return;
    switch (type) {
      case SSH.CHANNEL_DATA:
        channel.window -= payload.length - 9;
        this.bytesDown += payload.length;
        return this.#toClient(payload);
      case SSH.CHANNEL_EXTENDED_DATA:
        channel.window -= payload.length - 13;
        this.bytesDown += payload.length;
        return this.#toClient(payload);
      case SSH.CHANNEL_WINDOW_ADJUST:
      case SSH.CHANNEL_EOF:
        return this.#toClient(payload);
      case SSH.CHANNEL_CLOSE:
        channel.closedByNode = true;
        if (channel.closedByClient) this.#channels.remove(channel);
        return this.#toClient(payload);
      case SSH.CHANNEL_OPEN_CONFIRMATION:
        if (!this.#channels.confirm(channel, new WireReader(payload, 5).uint32()))
          throw new WireError('channel number in use');
        return this.#toClient(payload);
      case SSH.CHANNEL_OPEN_FAILURE:
        if (channel.node !== undefined) throw new WireError('the channel is open');
        this.#channels.remove(channel);
        return this.#toClient(payload);
      case SSH.CHANNEL_REQUEST:
        return this.#requestFromNode(channel, payload);
      case SSH.CHANNEL_SUCCESS:
      case SSH.CHANNEL_FAILURE:
        if (channel.pendingReplies.shift() !== 'node') throw new WireError('an answer to no request');
        this.#toClient(payload);
        while (channel.pendingReplies[0] === 'refusal') {
          channel.pendingReplies.shift();
          this.#client.send(channelFailure(channel.client));
        }
        return;
      default:
        this.#node.refuseMessage();
    }
  }

  /** Passes on the client's window adjustment, less the bytes that our own notices used. */
  #widen(channel: Channel, payload: Buffer) {
    const bytes = new WireReader(payload, 5).uint32();
    channel.window += bytes;
    if (channel.debt === 0) return this.#toNode(payload);
    const paid = Math.min(channel.debt, bytes);
    channel.debt -= paid;
    const to = { uint32: channel.node ?? 0 };
    this.#node.send(message(SSH.CHANNEL_WINDOW_ADJUST, to, { uint32: bytes - paid }));
  }

  #globalRequest(side: Side, payload: Buffer) {
    const fields = new WireReader(payload, 1);
    const name = fields.text();
    const wantsReply = fields.bool();
    const verdict = this.#ask(side, { kind: 'global', name });
    if (verdict.do === 'no-more-sessions') this.#noMoreSessions = true;
    if (!wantsReply) return;
    const { hostKeys } = this.#options;
    const proof = verdict.do === 'prove-host-keys' && hostKeys.prove(this.#client.sessionId, fields);
    (side === 'client' ? this.#client : this.#node).send(proof || requestFailure());
  }

  #openFromClient(payload: Buffer) {
    const fields = new WireReader(payload, 1);
    const type = fields.text();
    const number = fields.uint32();
    const window = fields.uint32();
    fields.uint32();
    const target = type === 'direct-tcpip' ? { host: fields.text(), port: fields.uint32() } : {};
    const verdict = this.#ask('client', { kind: 'open', type, ...target });
    if (verdict.do !== 'allow') {
      const why = verdict.do === 'refuse' ? verdict.reason : 'refused';
      this.#client.send(openFailure(number, OPEN_FAILURE.PROHIBITED, why));
    } else if (type === 'session' && this.#noMoreSessions) {
      this.#client.send(openFailure(number, OPEN_FAILURE.PROHIBITED, 'no more sessions, as was asked for'));
    } else if (this.#channels.size >= this.#options.limits.channelsPerConnection) {
      this.#client.send(
        openFailure(number, OPEN_FAILURE.RESOURCE_SHORTAGE, 'too many channels on one connection'),
      );
    } else {
      if (!this.#channels.add(type, number, window)) throw new WireError('channel number in use');
      if (target.host !== undefined)
        this.#options.onUse({ kind: 'forward', to: `${target.host}:${target.port}` });
      this.#toNode(payload);
    }
  }

  #openFromNode(payload: Buffer) {
    const fields = new WireReader(payload, 1);
    const type = fields.text();
    const verdict = this.#ask('node', { kind: 'open', type });
    const why = verdict.do === 'refuse' ? verdict.reason : 'refused';
    this.#node.send(openFailure(fields.uint32(), OPEN_FAILURE.PROHIBITED, why));
  }

  #requestFromClient(channel: Channel, payload: Buffer) {
    const fields = new WireReader(payload, 5);
    const name = fields.text();
    const wantsReply = fields.bool();
    const argument = argumentOf(name, fields);
    const verdict = this.#ask('client', { kind: 'request', channel: channel.type, name, ...argument });
    if (wantsReply && channel.pendingReplies.length >= this.#options.limits.maxPendingReplies)
      throw new WireError('too many requests wait for an answer');
    if (verdict.do === 'allow') {
      if (wantsReply) channel.pendingReplies.push('node');
      if (name === 'subsystem') this.#options.onUse({ kind: 'sftp' });
      if (name === 'shell') this.#options.onUse({ kind: 'shell' });
      this.#toNode(payload);
    } else if (verdict.do === 'exec') {
      if (wantsReply) channel.pendingReplies.push('node');
      this.#options.onUse(
        name === 'exec' ? { kind: 'exec', command: argument.command ?? '' } : { kind: 'shell' },
      );
      const to = { uint32: channel.node ?? 0 };
      const pieces = linePieces(verdict.command, this.#node.software).map((piece) =>
        Buffer.from(piece, 'latin1'),
      );
      const last = pieces.pop() ?? Buffer.alloc(0);
      for (const piece of pieces) this.#node.send(message(SSH.CHANNEL_REQUEST, to, execPart, false, piece));
      this.#node.send(message(SSH.CHANNEL_REQUEST, to, 'exec', wantsReply, last));
    } else {
      if (!wantsReply) return;
      if (channel.pendingReplies.length > 0) channel.pendingReplies.push('refusal');
      else this.#client.send(channelFailure(channel.client));
    }
  }

  #requestFromNode(channel: Channel, payload: Buffer) {
    const fields = new WireReader(payload, 5);
    const name = fields.text();
    const wantsReply = fields.bool();
    const verdict = this.#ask('node', { kind: 'request', channel: channel.type, name });
    if (verdict.do === 'allow') this.#toClient(payload);
    if (wantsReply && channel.node !== undefined) this.#node.send(channelFailure(channel.node));
  }
}

const recipient = (payload: Buffer) => {
  if (payload.length < 5) throw new WireError('message ends too soon');
  return payload.readUInt32BE(1);
};

const late: readonly number[] = [SSH.CHANNEL_WINDOW_ADJUST, SSH.CHANNEL_SUCCESS, SSH.CHANNEL_FAILURE];

/** Undefined where the message may be late for a closed channel: such a message is ignored, as sshd does. */
function known(channel: Channel | undefined, type: number): Channel | undefined {
  if (!channel && !late.includes(type)) throw new WireError('no such channel');
  return channel;
}

/** The argument of a request that the policy needs: a command is bytes, read as latin1. */
function argumentOf(name: string, fields: WireReader): { command?: string; subsystem?: string } {
  if (name === 'exec') return { command: fields.bytes().toString('latin1') };
  if (name === 'subsystem') return { subsystem: fields.text() };
  return {};
}

/** Limit on logged reasons of a session; a reason may contain a target that the client chose. */
const mostSaid = 20;

/** Logs each reason once a session as a warning: a client can ask for a thousand forwards a second. */
export function createRefusalLog(log: Logger, id: string) {
  const said = new Set<string>();
  return (side: Side, reason: string): void => {
    const isNews = !said.has(reason) && said.size < mostSaid;
    log[isNews ? 'warn' : 'debug']('gateway.refused', { id, side, reason });
    if (isNews) said.add(reason);
  };
}
