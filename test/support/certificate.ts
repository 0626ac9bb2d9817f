/** Certificates for a test's own TLS servers and clients, signed by an authority that lives as long as the test. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

export interface TestCertificate {
  /** PEM. */
  cert: string;
  key: string;
}

export interface TestAuthority {
  /** PEM. */
  ca: string;
  /** For a server on 127.0.0.1, or a client of that name and group. It ends in a day, or in so many milliseconds. */
  issue(who: 'server' | { name: string; group: string }, endsInMs?: number): TestCertificate;
}

const oid = {
  commonName: '550403',
  organization: '55040a',
  basicConstraints: '551d13',
  subjectAltName: '551d11',
  ecdsaWithSha256: '2a8648ce3d040302',
};

export function createAuthority(): TestAuthority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issuer = nameOf('Test authority');
  const isAuthority = extension(oid.basicConstraints, der(0x30, der(0x01, Buffer.from([0xff]))));
  const ca = certificate({ issuer, subject: issuer, publicKey: keys.publicKey, signer: keys.privateKey }, [
    isAuthority,
  ]);
  return {
    ca,
    issue(who, endsInMs) {
      const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const subject = who === 'server' ? nameOf('server') : nameOf(who.name, who.group);
      const address = der(0x30, der(0x87, Buffer.from([127, 0, 0, 1])), der(0x82, Buffer.from('localhost')));
      const extensions = who === 'server' ? [extension(oid.subjectAltName, address)] : [];
      const facts = { issuer, subject, publicKey: own.publicKey, signer: keys.privateKey, endsInMs };
      const key = own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      return { cert: certificate(facts, extensions), key };
    },
  };
}

/** An X.509 version 3 certificate (RFC 5280), good for a day around now, or until `endsInMs` from now. */
function certificate(
  facts: {
    issuer: Buffer;
    subject: Buffer;
    publicKey: KeyObject;
    signer: KeyObject;
    endsInMs?: number | undefined;
  },
  extensions: Buffer[],
): string {
  const algorithm = der(0x30, der(0x06, Buffer.from(oid.ecdsaWithSha256, 'hex')));
  const day = 86_400_000;
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    facts.issuer,
    der(0x30, time(Date.now() - day), time(Date.now() + (facts.endsInMs ?? day))),
    facts.subject,
    facts.publicKey.export({ type: 'spki', format: 'der' }),
    ...(extensions.length > 0 ? [der(0xa3, der(0x30, ...extensions))] : []),
  );
  const signature = sign('sha256', body, facts.signer);
  const whole = der(0x30, body, algorithm, der(0x03, Buffer.from([0]), signature));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function nameOf(commonName: string, organization?: string): Buffer {
  const part = (type: string, value: string) =>
    der(0x31, der(0x30, der(0x06, Buffer.from(type, 'hex')), der(0x0c, Buffer.from(value))));
  const unique = createHash('sha256').update(randomBytes(8)).digest('hex').slice(0, 8);
  return der(
    0x30,
    ...(organization === undefined ? [] : [part(oid.organization, organization)]),
    part(oid.commonName, organization === undefined ? `${commonName} ${unique}` : commonName),
  );
}

function extension(type: string, value: Buffer): Buffer {
  return der(0x30, der(0x06, Buffer.from(type, 'hex')), der(0x04, value));
}

function time(at: number): Buffer {
  return der(0x17, Buffer.from(`${new Date(at).toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));
}

/** A DER value: tag, length, contents. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const contents = Buffer.concat(parts);
  const { length } = contents;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), contents]);
}
