/**
 * Asks a login node whether it accepts a key, without logging in: the query of RFC 4252, section 7, that precedes a
 * signature.
 */
import { connect } from 'node:net';
import { blobOf } from '../../../lib/ssh/public-key.ts';
import { DISCONNECT, message, SSH } from '../../../lib/ssh/wire.ts';
import type { Route } from '../decision.ts';
import { defaultLimits } from '../limits.ts';
import { offerToNode } from '../transport/algorithms.ts';
import { createBarrier } from '../transport/barrier.ts';
import { Transport } from '../transport/transport.ts';

export interface KeyQuestion {
  loginNode: Route['loginNode'];
  username: string;
  /** `ssh-ed25519 AAAA…` */
  publicKey: string;
}

/** The reason why the login node rejects the key, as a part of a sentence; undefined where it accepts it. Takes at most `connectMs`. */
export function askKey({ loginNode, username, publicKey }: KeyQuestion): Promise<string | undefined> {
  return new Promise((resolve) => {
    const barrier = createBarrier();
    const { host, port, hostKey } = loginNode;
    const socket = connect({ host, port, autoSelectFamily: true });
    let isOther = false;
    const late = barrier.after(defaultLimits.connectMs, () => settle('it does not answer'));
    barrier.onFault(() => settle('the connection to it failed'));
    const node = new Transport({
      socket,
      barrier,
      offer: offerToNode('aes128-gcm@openssh.com'),
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
