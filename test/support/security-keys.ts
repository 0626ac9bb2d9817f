/** Security keys in software: one that signs as OpenSSH's PROTOCOL.u2f says, and a provider for OpenSSH's own programs. */
import { spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { lengthPrefixed } from './ssh-keys.ts';

const type = 'sk-ssh-ed25519@openssh.com';

export interface Said {
  /** By default: touched. */
  flags?: number;
  counter?: number;
  /** What is signed for, where it is another one than the key says. */
  application?: string;
  /** Of the signature. */
  type?: string;
}

/** A new key for an application. */
export function newSecurityKey(application = 'ssh:') {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const point = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  const blob = Buffer.concat([lengthPrefixed(type), lengthPrefixed(point), lengthPrefixed(application)]);
  return {
    blob,
    publicKey: `${type} ${blob.toString('base64')}`,
    /** A signature over data, with the name of its algorithm in front. */
    sign(data: Buffer, { flags = 1, counter = 1, ...said }: Said = {}): Buffer {
      const touch = Buffer.alloc(5);
      touch.writeUInt8(flags);
      touch.writeUInt32BE(counter, 1);
      const signed = Buffer.concat([sha256(said.application ?? application), touch, sha256(data)]);
      const signature = sign(null, signed, privateKey);
      return Buffer.concat([lengthPrefixed(said.type ?? type), lengthPrefixed(signature), touch]);
    },
  };
}

function sha256(data: string | Buffer): Buffer {
  return createHash('sha256').update(data).digest();
}

/** Builds a provider of security keys (`ssh-keygen -w`) in a directory: its file, or why that cannot be done here. */
export function buildProvider(directory: string): { file: string } | { whyNot: string } {
  const file = join(directory, 'security-key.so');
  const source = join(import.meta.dirname, 'security-key/provider.c');
  const built = spawnSync('cc', ['-shared', '-fPIC', '-o', file, source, '-lcrypto'], { encoding: 'utf8' });
  if (built.status !== 0 || !existsSync(file))
    return { whyNot: `no C compiler with OpenSSL's headers (libssl-dev): ${built.error ?? built.stderr}` };
  const made = spawnSync('ssh-keygen', ['-q', '-t', 'ed25519-sk', '-w', file, '-N', '', '-f', `${file}.key`]);
  return made.status === 0 ? { file } : { whyNot: `ssh-keygen takes no such provider: ${made.stderr}` };
}
