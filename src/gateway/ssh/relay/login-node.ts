/**
 * The gateway's own login at a login node, as the person's account and with the gateway's key (RFC 4252, section 7).
 * Nothing is sent to a host that does not show the pinned host key. A refused connection, as while sshd restarts, is
 * retried for a moment. A login node behind a hop is reached as by `ssh -J`: the gateway logs in to the hop as the same
 * person, and from there goes a TCP stream. Each session has its own connection to the hop, which ends with it.
 */
import { connect } from 'node:net';
import { addressOf, type Hop } from '../../../domain/slurm/hop.ts';
import { blobOf, signatureBlob, signedData } from '../../../lib/ssh/public-key.ts';
import { DISCONNECT, message, SSH, sshString } from '../../../lib/ssh/wire.ts';
import type { Route } from '../decision.ts';
import type { GatewayLimits } from '../limits.ts';
import { offerToNode } from '../transport/algorithms.ts';
import type { Barrier } from '../transport/barrier.ts';
import { ChannelStream } from '../transport/channel-stream.ts';
import { createReads, type Reads } from '../transport/reads.ts';
import type { PrivateKey } from '../transport/ssh2.ts';
import { Transport } from '../transport/transport.ts';
import type { ByteStream, End } from '../transport/transport-options.ts';

/** The reason why there is no connection. The text is one line for the person; `detail` is for the log. */
export interface NodeFailure {
  reason: NodeFailureReason | 'job';
  text: string;
  detail: string;
  /** Further lines for the person. */
  banner?: string;
}

type NodeFailureReason =
  | 'unreachable'
  | 'refused'
  | 'busy'
  | 'penalty'
  | 'closed'
  | 'host-key'
  | 'login'
  | 'protocol';

const texts: Record<NodeFailureReason, string> = {
  unreachable: 'The login node cannot be reached. Please try again in a minute.',
  refused: 'The login node refuses connections, it may be restarting. Please try again in a minute.',
  busy: 'The login node takes no more logins at the moment (MaxStartups). Please try again shortly.',
  penalty:
    'The login node shuts the gateway out for a while (PerSourcePenalties). Please tell your administrator.',
  closed: 'The login node closed the connection before the login. Please try again in a minute.',
  'host-key': 'The login node shows a host key that is not the expected one. Please tell your administrator.',
  login: 'The login node does not let your account in. Please tell your administrator if this goes on.',
  protocol: 'The connection to the login node failed. Please tell your administrator if this goes on.',
};

export interface NodeOptions {
  route: Route;
  keys: readonly [PrivateKey, ...PrivateKey[]];
  /** The barrier of the person's connection. */
  barrier: Barrier;
  limits: GatewayLimits;
  /** The cipher of the person's side. */
  cipher: string;
  /** Takes a token for a handshake: milliseconds until it may go on. */
  handshakeMs(): number;
  /** Called once, synchronously with the message of the successful login, so that no later message is lost. */
  onUp(node: Transport): void;
  onFailure(failure: NodeFailure): void;
}

const RETRY_MS = 250;

/** Connects, through the hop before the login node if it has one; the function returned gives up. */
export function openLoginNode(options: NodeOptions): () => void {
  const login = new NodeLogin(options);
  login.begin();
  return () => login.giveUp();
}

class NodeLogin {
  readonly #options: NodeOptions;
  readonly #expectedKey: Buffer;
  readonly #startedAt = performance.now();
  readonly #late: NodeJS.Timeout;
  #retry: NodeJS.Timeout | undefined;
  #end: (text: string) => void = () => {};
  #settled = false;

  constructor(options: NodeOptions) {
    this.#options = options;
    this.#expectedKey = blobOf(options.route.loginNode.hostKey);
    this.#late = options.barrier.after(options.limits.connectMs, () => this.#fail('unreachable', 'timeout'));
  }

  begin(): void {
    const { host, port, via } = this.#options.route.loginNode;
    if (via) this.#beginAt(via);
    else {
      const reads = createReads();
      this.#logIn(connect({ host, port, autoSelectFamily: true, onread: reads.onread }), reads);
    }
  }

  /** Logs in to the hop, and from there connects to the login node. */
  #beginAt(via: Hop): void {
    const { route, barrier } = this.#options;
    this.#end = openLoginNode({
      ...this.#options,
      route: { ...route, loginNode: via },
      onUp: (hop) => this.#logIn(streamThrough(hop, route.loginNode, barrier)),
      onFailure: ({ text, detail, ...failure }) =>
        this.#failWith({
          ...failure,
          text: text.replace('The login node', 'The host in front of the login node'),
          detail: `${addressOf(via)}: ${detail}`,
        }),
    });
  }

  #logIn(socket: ByteStream, reads?: Reads): void {
    const { route, keys, barrier, limits, cipher, handshakeMs } = this.#options;
    const [first, ...others] = keys;
    let isConnected = false;
    let isKeyRefused = false;
    const onConnect = barrier.guard(() => {
      isConnected = true;
    });
    socket.once('connect', onConnect);
    const node = new Transport({
      ...{ socket, barrier, limits, handshakeMs, ...(reads && { reads }) },
      offer: offerToNode(cipher),
      verifyHostKey: (blob) => {
        isKeyRefused = this.#expectedKey.length === 0 || !blob.equals(this.#expectedKey);
        return !isKeyRefused;
      },
      onReady: () => logIn(node, route.username, first),
    });
    this.#end = (text) => {
      node.close(DISCONNECT.BY_APPLICATION, text, limits.lingerMs);
      socket.destroySoon();
    };
    node.onMessage = ([type]) => {
      if (type === SSH.USERAUTH_SUCCESS) this.#onUp(node);
      else if (type === SSH.USERAUTH_FAILURE) {
        const next = others.shift();
        if (next) tryKey(node, route.username, next);
        else this.#fail('login', 'publickey refused');
      }
    };
    node.onEnd = (end) => {
      socket.destroy();
      if (isKeyRefused) this.#fail('host-key', end.text);
      else this.#onEnd(reasonOf(end, isConnected, node.greeting), end.text);
    };
  }

  giveUp(): void {
    if (this.#settle()) this.#end('the person has gone');
  }

  #onUp(node: Transport): void {
    if (!this.#settle()) return;
    node.trust();
    this.#options.onUp(node);
  }

  #onEnd(reason: NodeFailureReason, detail: string): void {
    const { barrier, limits } = this.#options;
    const passes = reason === 'refused' || reason === 'busy';
    if (!passes || performance.now() - this.#startedAt + RETRY_MS >= limits.retryMs)
      this.#fail(reason, detail);
    else if (!this.#settled) this.#retry = barrier.after(RETRY_MS, () => this.begin());
  }

  #fail(reason: NodeFailureReason, detail: string): void {
    this.#failWith({ reason, text: texts[reason], detail });
  }

  #failWith(failure: NodeFailure): void {
    if (!this.#settle()) return;
    this.#end('giving up');
    this.#options.onFailure(failure);
  }

  /** Returns true the first time: the outcome was still open. */
  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#late);
    clearTimeout(this.#retry);
    return true;
  }
}

function reasonOf(end: End, isConnected: boolean, greeting: string): NodeFailureReason {
  if (/no matching host key format/.test(end.text)) return 'host-key';
  if (greeting.startsWith('Exceeded MaxStartups')) return 'busy';
  if (greeting.startsWith('Not allowed at this time')) return 'penalty';
  if (!isConnected) return /ECONNREFUSED|Connection refused/.test(end.text) ? 'refused' : 'unreachable';
  if (end.by === 'network') return 'closed';
  return end.by === 'peer' ? 'login' : 'protocol';
}

/** A TCP connection that the hop makes to another host, for which the connection to the hop stays open. */
export function streamThrough(hop: Transport, to: Pick<Hop, 'host' | 'port'>, barrier: Barrier): ByteStream {
  const stream = new ChannelStream({ transport: hop, barrier, to });
  const end = () => hop.close(DISCONNECT.BY_APPLICATION, 'the session ended', 0);
  return stream.once('close', barrier.guard(end));
}

/** Sends the service request and the login together: sshd reads them in order, which saves a round trip. */
export function logIn(node: Transport, username: string, key: PrivateKey): void {
  node.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
  tryKey(node, username, key);
}

function tryKey(node: Transport, username: string, key: PrivateKey): void {
  const blob = key.getPublicSSH();
  const method = ['publickey', true, 'ssh-ed25519', blob] as const;
  const request = message(SSH.USERAUTH_REQUEST, username, 'ssh-connection', ...method);
  const bytes = key.sign(signedData(node.sessionId, request));
  if (bytes instanceof Error) throw bytes;
  node.send(Buffer.concat([request, sshString(signatureBlob(bytes))]));
}
