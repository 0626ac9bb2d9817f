/**
 * Asks a login node whether it accepts a key, without logging in: the query of RFC 4252, section 7, that precedes a
 * signature. A hop before it is asked first, and then logged in to, as the login node cannot be reached otherwise.
 */
import { connect } from 'node:net';
import { addressOf, type Hop } from '../../../domain/slurm/hop.ts';
import { blobOf } from '../../../lib/ssh/public-key.ts';
import { DISCONNECT, message, SSH } from '../../../lib/ssh/wire.ts';
import type { Route } from '../decision.ts';
import { defaultLimits } from '../limits.ts';
import { openLoginNode, streamThrough } from '../relay/login-node.ts';
import { offerToNode } from '../transport/algorithms.ts';
import { type Barrier, createBarrier } from '../transport/barrier.ts';
import { readPrivateKeys } from '../transport/ssh2.ts';
import { Transport } from '../transport/transport.ts';
import type { ByteStream } from '../transport/transport-options.ts';

const cipher = 'aes128-gcm@openssh.com';

export interface KeyQuestion {
  loginNode: Route['loginNode'];
  username: string;
  /** `ssh-ed25519 AAAA…` */
  publicKey: string;
  /** The keys with which the gateway logs in to a hop, in OpenSSH's format. */
  clientKeys: readonly string[];
}

/** The reason why the login node rejects the key, as a part of a sentence; undefined where it accepts it. */
export async function askKey(question: KeyQuestion): Promise<string | undefined> {
  const barrier = createBarrier();
  const { host, port, via } = question.loginNode;
  if (!via) return ask(question, connect({ host, port, autoSelectFamily: true }), barrier);
  const atHop = (await askKey({ ...question, loginNode: via })) ?? (await logInToHop(question, via, barrier));
  if (typeof atHop === 'string') return `${addressOf(via)}, through which it is reached: ${atHop}`;
  return ask(question, streamThrough(atHop, question.loginNode, barrier), barrier);
}

/** The connection to the hop, or the reason why there is none. */
function logInToHop(
  { username, clientKeys }: KeyQuestion,
  loginNode: Hop,
  barrier: Barrier,
): Promise<Transport | string> {
  const ids = { clusterId: '', userId: '', keyId: '', shell: '' };
  return new Promise((resolve) => {
    barrier.onFault(() => resolve('the connection to it failed'));
    openLoginNode({
      ...{ route: { ...ids, username, loginNode }, keys: readPrivateKeys(clientKeys), barrier },
      ...{ limits: defaultLimits, cipher, handshakeMs: () => 0 },
      onUp: resolve,
      onFailure: ({ detail }) => resolve(detail),
    });
  });
}

/** Takes at most `connectMs`. */
function ask(
  { loginNode: { hostKey }, username, publicKey }: KeyQuestion,
  socket: ByteStream,
  barrier: Barrier,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    let isOther = false;
    const late = barrier.after(defaultLimits.connectMs, () => settle('it does not answer'));
    barrier.onFault(() => settle('the connection to it failed'));
    const node = new Transport({
      socket,
      barrier,
      offer: offerToNode(cipher),
      verifyHostKey(blob) {
        isOther = !blob.equals(blobOf(hostKey));
        return !isOther;
      },
      limits: defaultLimits,
      onReady() {
        node.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
        const key = [false, 'ssh-ed25519', blobOf(publicKey)] as const;
        node.send(message(SSH.USERAUTH_REQUEST, username, 'ssh-connection', 'publickey', ...key));
      },
    });
    node.onMessage = ([type]) => {
      if (type === SSH.USERAUTH_PK_OK) settle(undefined);
      else if (type === SSH.USERAUTH_FAILURE) settle('it does not take the key');
    };
    node.onEnd = (end) =>
      settle(isOther ? 'it shows another host key' : `it cannot be reached (${end.text})`);

    function settle(answer: string | undefined) {
      clearTimeout(late);
      node.close(DISCONNECT.BY_APPLICATION, 'only asked', 0);
      socket.destroy();
      resolve(answer);
    }
  });
}
