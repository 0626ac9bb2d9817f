/**
 * SSH public keys as people register them: one Ed25519 key in OpenSSH's format or RFC 4716's (RFC 8709; contract, "SSH key"), or
 * one in a security key (FIDO; OpenSSH, PROTOCOL.u2f) where the configuration admits those.
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
  /** `ssh-ed25519 AAAA…`, the comment dropped and the base64 written canonically. */
  material: string;
  /** `SHA256:` and unpadded base64, as `ssh-keygen -lf` prints it. */
  fingerprint: string;
}

/** A key that a person registered. It is theirs for good, also when it is revoked. */
export interface SshKey extends SshPublicKey {
  id: string;
  userId: string;
  state: 'active' | 'revoked';
  /** RFC 3339; null while it is active. */
  revokedAt: string | null;
  createdAt: string;
  createdByUserId: string;
  createdCommandId: string;
  /** The generation of the person's key set that it came with. */
  sourceRevision: number;
  /** What the person calls it: at first the comment of the key. */
  label: string | null;
  /** The address that registered it; null where that is not known. */
  createdFrom: string | null;
  /** The last login with it and where that came from; null where none is known. */
  lastUsedAt: string | null;
  lastUsedFrom: string | null;
}

export interface SshKeySet {
  userId: string;
  generation: number;
  /** Of the active fingerprints, in order. */
  sourceHash: string;
  createdAt: string;
}

const keyLength = 32;
/** OpenSSH writes `ssh:` and what a person adds. Keys for anything else, a web site for example, begin otherwise. */
const sshApplication = 'ssh:';
const longestApplication = 255;

/** A label as it is kept: one line that can be shown anywhere; null for none. */
export function keyLabel(text: string): string | null {
  return visibleName(text) || null;
}

export interface CommentedKey extends SshPublicKey {
  comment: string;
}

/** A key as PuTTYgen saves it (RFC 4716), as the line that OpenSSH would write; any other text as it is. */
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

/** What a text is that is not one public key on one line, as the sentence that refuses it; never with a part of the text. */
function otherThanKey(text: string): string | undefined {
  if (text === '') return 'The public key is empty.';
  if (mayHavePrivateKey(text)) {
    const what = hasPrivateKey(text) ? 'is a private key' : 'may be a private key, or a part of one';
    return `That ${what}. Keep it secret, and send the file that ends in .pub.`;
  }
  if (/BEGIN +SSH2 PUBLIC KEY/.test(text) && text.split('BEGIN').length === 2)
    return 'That is a public key of RFC 4716 whose lines BEGIN and END are not whole.';
  // Two lines pasted into one: the second key would be dropped as a comment and never work.
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
 * Reads one public key. Throws `invalid_request` with a sentence that says what it is instead. `securityKeys`: whether keys in
 * security keys are taken.
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
  /** What a security key signs for, at most 255 bytes; undefined for a plain key. */
  application: Buffer | undefined;
}

/** Reads a blob that is exactly one key of the type; undefined for anything else. Its parts are views into `blob`. */
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

/** Whether a key is for SSH: what a security key signs for a web site must not open a shell. */
export function isForSsh({ application }: KeyBlob): boolean {
  return application === undefined || application.toString('latin1').startsWith(sshApplication);
}

/** The y of every point whose order divides 8, canonical or not, in hex without the sign bit (as libsodium refuses them). */
const ofSmallOrder: ReadonlySet<string> = new Set([
  `00${'00'.repeat(31)}`,
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
]);

/** Whether signatures by a key can be made without a secret, since its point has next to no multiples (RFC 8032, 5.1). */
function isOfSmallOrder(point: Buffer): boolean {
  const y = Buffer.from(point);
  y[31] = (y[31] ?? 0) & 0x7f;
  return ofSmallOrder.has(y.toString('hex'));
}

function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  // Node skips what is no base64, so what does not come out the same again was none.
  return bytes.toString('base64') === text ? bytes : undefined;
}
