/**
 * SSH public keys as people register them: an Ed25519 key in the format of OpenSSH or RFC 4716 (RFC 8709; contract,
 * "SSH key"), or a FIDO security key's (OpenSSH, PROTOCOL.u2f) where the configuration allows those.
 */
import { createHash } from 'node:crypto';
import { invalidRequest } from '../error.ts';
import { hasPrivateKey, mayHavePrivateKey, visibleName } from '../text.ts';

export const plainKeyType = 'ssh-ed25519';
export const securityKeyType = 'sk-ssh-ed25519@openssh.com';

const keyTypes = [plainKeyType, securityKeyType] as const;

export type SshKeyType = (typeof keyTypes)[number];

export interface SshPublicKey {
  type: SshKeyType;
  /** `ssh-ed25519 AAAA…` without a comment, in canonical base64. */
  material: string;
  /** `SHA256:` and unpadded base64, as `ssh-keygen -lf` prints it. */
  fingerprint: string;
}

/** A registered key. It belongs to its person forever, even when revoked. */
export interface SshKey extends SshPublicKey {
  id: string;
  userId: string;
  state: 'active' | 'revoked';
  /** RFC 3339; null while it is active. */
  revokedAt: string | null;
  createdAt: string;
  createdByUserId: string;
  createdCommandId: string;
  /** The generation of the person's key set that first contained it. */
  sourceRevision: number;
  /** The person's name for the key; initially the key's comment. */
  label: string | null;
  /** The source address of the registration; null if unknown. */
  createdFrom: string | null;
  /** The time and source address of the last login with it; null if none is known. */
  lastUsedAt: string | null;
  lastUsedFrom: string | null;
}

export interface SshKeySet {
  userId: string;
  generation: number;
  /** The hash of the sorted active fingerprints. */
  sourceHash: string;
  createdAt: string;
}

const keyLength = 32;
/** OpenSSH's prefix for the application of a security key; keys for web sites and other uses have another one. */
const sshApplication = 'ssh:';
const longestApplication = 255;

/** A label as it is stored: one visible line; null for an empty one. */
export function keyLabel(text: string): string | null {
  return visibleName(text) || null;
}

export interface CommentedKey extends SshPublicKey {
  comment: string;
}

/** Converts a key that PuTTYgen saved (RFC 4716) to OpenSSH's line; returns any other text unchanged. */
function asLine(text: string): string {
  const block = /^---- BEGIN +SSH2 PUBLIC KEY ----\n((?:(?!\n----).)*)\n---- END +SSH2 PUBLIC KEY ----$/s;
  const [, saved] = block.exec(text.replace(/[ \t]*(\r\n?|\n)/g, '\n').replace(/\\\n/g, '')) ?? [];
  if (saved === undefined) return text;
  const [, comment = ''] = /^comment: *"?(.*?)"?$/im.exec(saved) ?? [];
  const encoded = saved.replace(/^[\w-]+:.*$/gm, '').replace(/\s/g, '');
  const blob = Buffer.from(encoded, 'base64');
  const type = blob.length < 4 ? '' : blob.toString('latin1', 4, 4 + blob.readUInt32BE());
  return `${type} ${encoded} ${comment}`;
}

/** The refusal for a text that is not one public key on one line; it never quotes the text. Undefined for a possible key. */
function otherThanKey(text: string): string | undefined {
  if (text === '') return 'The public key is empty.';
  if (mayHavePrivateKey(text)) {
    const what = hasPrivateKey(text) ? 'is a private key' : 'may be a private key, or a part of one';
    return `That ${what}. Keep it secret, and send the file that ends in .pub.`;
  }
  if (/BEGIN +SSH2 PUBLIC KEY/.test(text) && text.split('BEGIN').length === 2)
    return 'That is a public key of RFC 4716 whose lines BEGIN and END are not whole.';
  if (text.startsWith('-----BEGIN'))
    return 'That is not in OpenSSH’s format. Send the file that ends in .pub, or what `ssh-keygen -y -f FILE` prints of the private key.';
  if (/^AAAA[\w+/]+=*(\s|$)/.test(text))
    return 'The type of the key is missing in front of it. Send the whole line, as in the file that ends in .pub: ssh-ed25519 AAAA…';
  // Two keys pasted into one line: the second would be dropped as a comment and never work.
  if (/[\r\n]/.test(text) || /^\S+\s+AAAA\S*\s(.*\s)?AAAA[A-Za-z0-9+/]{40,}={0,2}(?!\S)/.test(text))
    return 'Send one public key on one line.';
  if (/^(sk-)?(ssh|ecdsa)-\S*-cert-v\d+@openssh\.com(\s|$)/.test(text))
    return 'That is a certificate. Send the public key that it was made for: its file ends in .pub, not in -cert.pub.';
  if (!/^(?!(sk-)?(ssh|ecdsa)-).*\s(sk-)?(ssh|ecdsa)-\S+\s+AAAA/.test(text)) return undefined;
  return /^(\S+,)?@?cert-authority[,\s]/.test(text)
    ? 'That is the key of a certificate authority, which is not taken here. Send your own key alone.'
    : 'What stands in front of the key, such as options of authorized_keys, does not hold here. Send the key alone.';
}

/**
 * Parses one public key. Throws `invalid_request` with a sentence that says what the text is instead. `securityKeys`
 * allows keys of security keys.
 */
export function parseSshPublicKey(text: string, { securityKeys = false } = {}): CommentedKey {
  const line = asLine(text.trim());
  const refusal = otherThanKey(line);
  if (refusal !== undefined) throw invalidRequest(refusal);
  const [named = '', encoded = '', ...comment] = line.split(/[ \t]+/);
  const advice = `Make one with: ssh-keygen -t ed25519${securityKeys && named.startsWith('sk-') ? '-sk' : ''}`;
  const type = keyTypes.find((one) => one === named && (securityKeys || one === plainKeyType));
  if (!type) {
    const other = /^[a-z-]{0,20}(ssh|ecdsa)-[a-z0-9@.-]{1,64}$/.test(named) ? `, not ${named}` : '';
    throw invalidRequest(`Only Ed25519 keys are accepted${other}. ${advice}`);
  }
  const blob = decodeBase64(encoded);
  const key = blob && readKeyBlob(type, blob);
  if (!key)
    throw invalidRequest('The public key is not readable as an Ed25519 key; was it cut off in copying?');
  if (isOfSmallOrder(key.point)) {
    throw invalidRequest(`This public key proves nothing: anyone can sign for it. ${advice}`);
  }
  if (!isForSsh(key)) {
    throw invalidRequest(
      `This security key was made for something else: its application does not begin with “ssh:”. ${advice}`,
    );
  }
  return {
    type,
    material: `${type} ${blob.toString('base64')}`,
    fingerprint: sshFingerprint(blob),
    comment: comment.join(' '),
  };
}

/** The SHA-256 fingerprint of a key blob (RFC 4253 §6.6), as OpenSSH prints it. */
export function sshFingerprint(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

export interface KeyBlob {
  /** The compressed point (RFC 8032, 5.1.5), 32 bytes. */
  point: Buffer;
  /** The application that a security key signs for, at most 255 bytes; undefined for a plain key. */
  application: Buffer | undefined;
}

/** Parses a blob that is exactly one key of the type; undefined for anything else. Its parts are views into `blob`. */
export function readKeyBlob(type: SshKeyType, blob: Buffer): KeyBlob | undefined {
  const head = Buffer.from([0, 0, 0, type.length, ...Buffer.from(type), 0, 0, 0, keyLength]);
  if (!blob.subarray(0, head.length).equals(head)) return undefined;
  const point = blob.subarray(head.length, head.length + keyLength);
  const rest = blob.subarray(head.length + keyLength);
  if (point.length !== keyLength) return undefined;
  if (type === plainKeyType) return rest.length === 0 ? { point, application: undefined } : undefined;
  if (rest.length < 4 || rest.length - 4 > longestApplication) return undefined;
  return rest.readUInt32BE(0) === rest.length - 4 ? { point, application: rest.subarray(4) } : undefined;
}

/** Checks that a key is for SSH: a key that a security key made for a web site must not open a shell. */
export function isForSsh({ application }: KeyBlob): boolean {
  return application === undefined || application.toString('latin1').startsWith(sshApplication);
}

/** The y of every point whose order divides 8, canonical or not, in hex without the sign bit (libsodium's list). */
const ofSmallOrder: ReadonlySet<string> = new Set([
  `00${'00'.repeat(31)}`,
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
]);

/** A small-order point has so few multiples that signatures can be forged without the secret (RFC 8032, 5.1). */
function isOfSmallOrder(point: Buffer): boolean {
  const y = Buffer.from(point);
  y[31] = (y[31] ?? 0) & 0x7f;
  return ofSmallOrder.has(y.toString('hex'));
}

function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  // Node skips invalid base64 characters, so valid text must encode to itself again.
  return bytes.toString('base64') === text ? bytes : undefined;
}
