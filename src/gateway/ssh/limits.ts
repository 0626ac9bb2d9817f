/** Every limit of the gateway with its reason. Times are milliseconds, sizes bytes. */
export const defaultLimits = Object.freeze({
  // A person may have to type a passphrase, never for longer than this.
  loginGraceMs: 30_000,
  // A person whose sign-in has lapsed may need their telephone for a new one. The login takes no slot meanwhile.
  signInWaitMs: 60_000,
  // An editor opens a handful of connections at once.
  waitingPerUser: 32,
  // As sshd's MaxAuthTries: an agent offers a handful of keys; more is guessing.
  loginAttempts: 6,
  // Connections that have not logged in. Each holds a socket and about 100 KB; one address never takes all of it.
  unauthenticated: 256,
  unauthenticatedPerSource: 16,
  // The next connections from a source of recent logins are very probably from known people too.
  unauthenticatedPerKnownSource: 128,
  // A script that opens a hundred connections at once is served sixteen by sixteen. A queued one costs a socket,
  // unread.
  queuedPerSource: 112,
  queued: 512,
  queueMs: 10_000,
  // A client sends its version at once; a peer that sends nothing is no SSH client.
  helloMs: 10_000,
  // A handshake costs about a millisecond of CPU. Rate per second after a burst; a login above it is delayed. A
  // course of two hundred behind one address is in within five seconds.
  handshakesPerSource: 20,
  handshakesPerSourceBurst: 100,
  handshakes: 200,
  handshakesBurst: 400,
  // Scripts open hundreds of connections at once; a loop that forgets to close them opens thousands. A whole
  // institute may stand behind one address.
  sessionsPerUser: 1000,
  sessionsPerSource: 4000,
  // Guessing a key is hopeless, but costs CPU: after so many failed connections from one source in ten minutes, each
  // wrong key is answered after this delay, which doubles up to the maximum. A right key is never delayed, and must
  // still come before the login times out where a client offers four wrong ones first.
  backoffAfterFailures: 10,
  backoffMs: 250,
  backoffMaxMs: 2_000,
  // A browser over a forwarded port opens dozens; more than this is a fault.
  channelsPerConnection: 512,
  // Requests that wait for an answer on one channel. Clients have one or two.
  maxPendingReplies: 256,
  // A login node on the same site answers in milliseconds; people give up after some seconds.
  connectMs: 10_000,
  // A login node whose sshd restarts refuses connections for a second or two.
  retryMs: 3_000,
  // Keeps NAT entries alive. A laptop may sleep: TCP decides how long a silent client is waited for, as with sshd. A
  // login node is a machine of the site: after this many misses it is gone, and so is what ran there.
  keepaliveMs: 30_000,
  keepaliveMisses: 4,
  // 0 (never): an idle session does no harm, and people leave editors open over night.
  idleMs: 0,
  // The fallback for recheck(): even if a notice is lost, a revoked person is out within seconds.
  recheckMs: 5_000,
  // "When the gateway cannot confirm access" sessions close. A cluster's control plane, or a stopped service, may
  // restart within this.
  confirmGraceMs: 300_000,
  // A service that runs and confirms nothing is cut off from its database or its gateway: revocations may not arrive.
  unconfirmedMs: 30_000,
  // Reading pauses when this much is queued for the other side; enough to keep both busy.
  backlogBytes: 512 * 1024,
  // Only a peer that sends requests without reading the answers gets here.
  backlogHardBytes: 8 * 1024 * 1024,
  // RFC 4344: rekey well before 2^32 blocks of 16 bytes. OpenSSH does so itself; other clients may not.
  rekeyBytes: 32 * 1024 ** 3,
  // As RFC 4253, section 9, recommends.
  rekeyMs: 3_600_000,
  // A peer that has begun a key exchange finishes it within a round trip. Until then nothing is sent to it.
  rekeyGraceMs: 30_000,
  // How long open sessions may continue when the service stops: just enough to read the reason.
  drainMs: 500,
  // OpenSSH drops unprinted output when the disconnect arrives. So the disconnect waits for the answer to a keepalive
  // sent behind the notice, and no longer than this.
  noticeMs: 1_000,
  // A peer that does not read the disconnect is cut off after this.
  lingerMs: 500,
});

export type GatewayLimits = Readonly<Record<keyof typeof defaultLimits, number>>;
