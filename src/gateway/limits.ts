/** Every bound of the gateway with its reason. Times are milliseconds, sizes bytes. */
export interface GatewayLimits {
  readonly loginGraceMs: number;
  readonly maxAuthAttempts: number;
  readonly maxUnauthenticated: number;
  readonly maxUnauthenticatedPerAddress: number;
  readonly maxChannels: number;
  readonly maxPendingReplies: number;
  readonly connectMs: number;
  readonly keepaliveMs: number;
  readonly keepaliveMisses: number;
  readonly recheckMs: number;
  readonly confirmGraceMs: number;
  readonly backlogBytes: number;
  readonly backlogHardBytes: number;
  readonly rekeyBytes: number;
  readonly noticeMs: number;
  readonly lingerMs: number;
}

export const defaultLimits: GatewayLimits = Object.freeze({
  // A person may have to type a passphrase, never for longer than this.
  loginGraceMs: 30_000,
  // As sshd's MaxAuthTries: an agent offers a handful of keys; more is guessing.
  maxAuthAttempts: 6,
  // Strangers hold a socket and about 100 KB each: bounded, and one address never takes all of it.
  maxUnauthenticated: 256,
  maxUnauthenticatedPerAddress: 128,
  // A browser over a forwarded port opens dozens; more than this is a fault.
  maxChannels: 512,
  // Requests that wait for an answer on one channel. Clients have one or two.
  maxPendingReplies: 256,
  // A login node on the same site answers in milliseconds; people give up after some seconds.
  connectMs: 10_000,
  // Keeps NAT entries alive. A laptop may sleep: how long a silent client is waited for is TCP's business, as with sshd.
  // A login node is a machine of the site: silent for this many in a row it is gone, and so is what ran there.
  keepaliveMs: 30_000,
  keepaliveMisses: 4,
  // The net under recheck(): whatever notice was lost, a revoked person is out within seconds.
  recheckMs: 5_000,
  // "When the gateway cannot confirm access" sessions close; a restart of the database is shorter than this.
  confirmGraceMs: 15_000,
  // Reading pauses when this much waits for the other side; enough to keep both busy.
  backlogBytes: 512 * 1024,
  // Only a peer that asks without reading the answers gets here.
  backlogHardBytes: 8 * 1024 * 1024,
  // RFC 4344: rekey well before 2^32 blocks of 16 bytes. OpenSSH does so itself; other clients may not.
  rekeyBytes: 32 * 1024 ** 3,
  // OpenSSH drops what it has not printed when the disconnect arrives, so the notice gets a head start.
  noticeMs: 100,
  // A peer that does not take our last words is cut off.
  lingerMs: 500,
});
