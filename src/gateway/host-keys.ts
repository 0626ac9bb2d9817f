/**
 * Host keys that take one another's place (OpenSSH's PROTOCOL, section 2.5): after a login every client is told which host keys
 * the gateway has, and one with `UpdateHostKeys` has it prove those that it does not know, and notes them. So a key is known
 * before it is used. A key that is left out is forgotten by those clients.
 */

import { SSH } from '../ssh/message-numbers.ts';
import { signatureBlob } from '../ssh/public-key.ts';
import { type Field, message, sshString, WireError, type WireReader } from '../ssh/wire.ts';
import type { PrivateKey } from './ssh2.ts';

export const proveRequest = 'hostkeys-prove-00@openssh.com';
/** A client asks once; signing costs as much as a login. */
const mostProofs = 4;

export interface HostKeys {
  /** What a client is told after its login. */
  announcement(): Buffer;
  /** The answer to `proveRequest`, whose fields are read up to the keys; undefined where there is nothing to prove. */
  prove(sessionId: Buffer, fields: WireReader): Buffer | undefined;
}

/** Of one connection. `keys`: the one in use first. */
export function createHostKeys(keys: readonly PrivateKey[]): HostKeys {
  let proofs = 0;
  return {
    announcement: () =>
      message(SSH.GLOBAL_REQUEST, 'hostkeys-00@openssh.com', false, ...keys.map((key) => key.getPublicSSH())),
    prove(sessionId, fields) {
      proofs += 1;
      if (proofs > mostProofs) return undefined;
      const signatures: Field[] = [];
      while (fields.left > 0) {
        const blob = fields.bytes();
        const key = keys.find((one) => one.getPublicSSH().equals(blob));
        if (!key || signatures.length >= keys.length) return undefined;
        const data = Buffer.concat([sshString(proveRequest), sshString(sessionId), sshString(blob)]);
        const bytes = key.sign(data);
        if (bytes instanceof Error) throw new WireError(bytes.message);
        signatures.push(signatureBlob(bytes));
      }
      return signatures.length === 0 ? undefined : message(SSH.REQUEST_SUCCESS, ...signatures);
    },
  };
}
