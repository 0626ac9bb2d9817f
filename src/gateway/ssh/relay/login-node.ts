/**
 * The gateway's own login at a login node, as the person's account and with the gateway's key (RFC 4252, section 7).
 * Nothing is sent to a machine that does not show the pinned host key. A machine that refuses connections, as one whose
 * sshd restarts, is tried again for a moment.
 */
import { connect } from 'node:net';
import { DISCONNECT, SSH } from '../../../lib/ssh/message-numbers.ts';
import { blobOf, signatureBlob, signedData } from '../../../lib/ssh/public-key.ts';
import { message, sshString } from '../../../lib/ssh/wire.ts';
import type { Route } from '../decision.ts';
import type { GatewayLimits } from '../limits.ts';
import { offerToNode } from '../transport/algorithms.ts';
import type { Barrier } from '../transport/barrier.ts';
import { createReads } from '../transport/reads.ts';
import type { PrivateKey } from '../transport/ssh2.ts';
import { Transport } from '../transport/transport.ts';
import type { End } from '../transport/transport-options.ts';

/** Why there is no connection. The text is one line for the person; `detail` is for the log. */
export interface NodeFailure {
  reason: 'unreachable' | 'refused' | 'busy' | 'penalty' | 'closed' | 'host-key' | 'login' | 'protocol';
  text: string;
  detail: string;
}

const texts: Record<NodeFailure['reason'], string> = {
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
  key: PrivateKey;
  /** That of the person's connection. */
  barrier: Barrier;
  limits: GatewayLimits;
  /** The cipher of the person's side. */
  cipher: string;
  /** Takes a handshake for new keys: milliseconds until it may go on. */
  handshakeMs(): number;
  /** Called once, synchronously with the message that let us in, so that nothing after it is lost. */
  onUp(node: Transport): void;
  onFailure(failure: NodeFailure): void;
}

const RETRY_MS = 250;

/** Connects; the function returned gives up. */
export function openLoginNode(options: NodeOptions): () => void {
  const { barrier, limits } = options;
  const startedAt = performance.now();
  let settled = false;
  let giveUp = () => {};
  let retry: NodeJS.Timeout | undefined;

  const timer = barrier.after(limits.connectMs, () => fail('unreachable', 'timeout'));
  start();

  function start() {
    giveUp = tryLoginNode({
      ...options,
      onUp(node) {
        settle();
        options.onUp(node);
      },
      onFailure(failure) {
        const passes = failure.reason === 'refused' || failure.reason === 'busy';
        if (passes && performance.now() - startedAt + RETRY_MS < limits.retryMs)
          retry = barrier.after(RETRY_MS, start);
        else fail(failure.reason, failure.detail);
      },
    });
  }

  function settle() {
    settled = true;
    clearTimeout(timer);
    clearTimeout(retry);
  }

  function fail(reason: NodeFailure['reason'], detail: string) {
    if (settled) return;
    settle();
    giveUp();
    options.onFailure({ reason, text: texts[reason], detail });
  }

  return () => {
    if (settled) return;
    settle();
    giveUp();
  };
}

/** One try. */
function tryLoginNode(options: NodeOptions): () => void {
  const { route, key, barrier, limits } = options;
  const { guard } = barrier;
  const expected = blobOf(route.loginNode.hostKey);
  let settled = false;
  let connected = false;
  let keyRefused = false;

  const { host, port } = route.loginNode;
  const reads = createReads();
  const socket = connect({ host, port, autoSelectFamily: true, onread: reads.onread });
  const onConnect = guard(() => {
    connected = true;
  });
  socket.once('connect', onConnect);
  const node = new Transport({
    socket,
    reads,
    barrier,
    offer: offerToNode(options.cipher),
    verifyHostKey: (blob) => {
      keyRefused = expected.length === 0 || !blob.equals(expected);
      return !keyRefused;
    },
    limits,
    handshakeMs: options.handshakeMs,
    onReady: () => logIn(node, route.username, key),
  });
  node.onMessage = onMessage;
  node.onEnd = (end) => fail(reasonOf(end), end.text);

  function onMessage(payload: Buffer) {
    const type = payload[0];
    if (type === SSH.USERAUTH_SUCCESS) {
      settled = true;
      node.trust();
      options.onUp(node);
    } else if (type === SSH.USERAUTH_FAILURE) fail('login', 'publickey refused');
  }

  function reasonOf(end: End): NodeFailure['reason'] {
    if (keyRefused || /no matching host key format/.test(end.text)) return 'host-key';
    if (node.greeting.startsWith('Exceeded MaxStartups')) return 'busy';
    if (node.greeting.startsWith('Not allowed at this time')) return 'penalty';
    if (!connected) return /ECONNREFUSED/.test(end.text) ? 'refused' : 'unreachable';
    if (end.by === 'network') return 'closed';
    return end.by === 'peer' ? 'login' : 'protocol';
  }

  function fail(reason: NodeFailure['reason'], detail: string) {
    if (settled) return;
    settled = true;
    node.close(DISCONNECT.BY_APPLICATION, 'giving up', limits.lingerMs);
    socket.destroy();
    options.onFailure({ reason, text: texts[reason], detail });
  }

  return () => {
    if (settled) return;
    settled = true;
    node.close(DISCONNECT.BY_APPLICATION, 'the person has gone', limits.lingerMs);
    socket.destroySoon();
  };
}

/** Asks for the service and logs in in one go: sshd reads them in order, and a round trip is saved. */
function logIn(node: Transport, username: string, key: PrivateKey): void {
  node.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
  const blob = key.getPublicSSH();
  const request = message(
    SSH.USERAUTH_REQUEST,
    username,
    'ssh-connection',
    'publickey',
    true,
    'ssh-ed25519',
    blob,
  );
  const bytes = key.sign(signedData(node.sessionId, request));
  if (bytes instanceof Error) throw bytes;
  node.send(Buffer.concat([request, sshString(signatureBlob(bytes))]));
}
