/**
 * Rotation of host keys (OpenSSH's PROTOCOL, section 2.5): after a login the gateway announces all its host keys. A
 * client with `UpdateHostKeys` asks for proofs of those that it does not know and saves them, so that it knows a key
 * before that is used. It forgets a key that is no longer announced.
 */
import { signatureBlob } from '../../../lib/ssh/public-key.ts';
import { type Field, message, SSH, sshString, WireError, type WireReader } from '../../../lib/ssh/wire.ts';
import type { PrivateKey } from './ssh2.ts';

export const proveRequest = 'hostkeys-prove-00@openssh.com';
/** Limit on proofs for one connection. A client asks once; signing costs as much as a login. */
const mostProofs = 4;

export interface HostKeys {
  /** The message to a client after its login: all host keys. */
  announcement(): Buffer;
  /** The answer to `proveRequest`, whose fields are read up to the keys; undefined where there is nothing to prove. */
  prove(sessionId: Buffer, fields: WireReader): Buffer | undefined;
}

/** For one connection. `keys`: the one in use first. */
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
