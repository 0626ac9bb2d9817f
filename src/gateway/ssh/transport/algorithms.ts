/**
 * The gateway's offer in a key exchange, the post-quantum exchange first: no SHA-1, no CBC, no compression, no
 * finite-field groups. Where the CPU has AES instructions AES-GCM is preferred. In SSH the client's order decides
 * (RFC 4253, section 7.1) and OpenSSH's begins with ChaCha20-Poly1305, at a third of the speed; so the gateway reads
 * the client's list first and offers only AES-GCM to a client that has it.
 */
import { readFileSync } from 'node:fs';
import { HYBRID, type KexInit, readKexInit } from './hybrid-kex.ts';
import type { Offer } from './ssh2.ts';

const gcm = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'];
const chacha = 'chacha20-poly1305@openssh.com';
const ctr = ['aes128-ctr', 'aes192-ctr', 'aes256-ctr'];

const hasAes = cpuHasAes();

const base: Offer = Object.freeze({
  kex: [
    HYBRID,
    'curve25519-sha256',
    'curve25519-sha256@libssh.org',
    'ecdh-sha2-nistp256',
    'ecdh-sha2-nistp384',
    'ecdh-sha2-nistp521',
  ],
  serverHostKey: ['ssh-ed25519'],
  cipher: hasAes ? [...gcm, chacha, ...ctr] : [chacha, ...gcm, ...ctr],
  // libssh2 before 1.11, as in curl of Debian 12, needs one of the last two.
  mac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512'],
});

/** The offer to a client, by its KEXINIT; undefined for a client that waits for ours. */
export function offerToClient(init: KexInit | undefined): Offer {
  const [[guess = ''] = [], , up = [], down = []] = init?.lists ?? [];
  const offer = offerOf(init && up.filter((name) => down.includes(name)));
  if (!init?.isGuessed || !offer.kex.includes(guess)) return offer;
  // The client's order decides anyway; a correct guess of it counts only if that exchange is also our first.
  return { ...offer, kex: [guess, ...offer.kex.filter((name) => name !== guess)] };
}

function offerOf(ciphers: readonly string[] | undefined): Offer {
  const first = ciphers?.find((name) => base.cipher.includes(name));
  if (!hasAes || !ciphers || !first || gcm.includes(first)) return base;
  return gcm.some((name) => ciphers.includes(name)) ? { ...base, cipher: gcm } : base;
}

/** The offer to a login node: the cipher of the person's side first, as packets pass in place between equal ciphers. */
export function offerToNode(preferred: string): Offer {
  return { ...base, cipher: [preferred, ...base.cipher.filter((name) => name !== preferred)] };
}

/**
 * Parses a client's KEXINIT behind its identification line (RFC 4253, sections 4.2 and 7.1). Returns `more` while it
 * is incomplete, undefined for other bytes.
 */
export function readFirstInit(bytes: Buffer): KexInit | 'more' | undefined {
  const line = bytes.indexOf(10);
  if (line < 0) return bytes.length > 255 ? undefined : 'more';
  const packet = bytes.subarray(line + 1);
  if (packet.length < 6) return 'more';
  const length = packet.readUInt32BE(0);
  if (packet[5] !== 20 || length > 35_000) return undefined;
  if (packet.length < length + 4) return 'more';
  try {
    return readKexInit(packet.subarray(5));
  } catch {
    return undefined;
  }
}

function cpuHasAes(): boolean {
  if (process.arch === 'arm64') return true;
  try {
    return /\baes\b/.test(readFileSync('/proc/cpuinfo', 'latin1'));
  } catch {
    return true;
  }
}
