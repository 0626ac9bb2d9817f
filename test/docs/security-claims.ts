/** Which tests show each claim of docs/security.md: how the claim begins, and below it tests by file below test/ and title. */

const text = `
Without a valid token
  identity/authentication: … refuses a token …: 401 with WWW-Authenticate: Bearer
  http/pages: …: an unknown address is 401 without a token and 404 not_found with one
They do not learn who exists
  gateway/gateway: an unknown key and an unknown login name get no reason
  identity/issuer/sign-in: a wrong email and a wrong password look the same
The gateway accepts only Ed25519
  gateway/gateway: only Ed25519 keys are accepted
  gateway/algorithms: no SHA-1, no CBC, no compression, strict key exchange, a post-quantum exchange first
Security keys are taken only
  gateway/security-keys: by default security keys are not taken and not announced
  gateway/security-keys: a login takes the signature of the key itself, touched, for SSH, as it was made
  ssh/security-key: no user key: a security key …
A login is decided on the key
  gateway/hostile: login is decided on the key that was proven, never on one that was only offered
Guessing passwords is slowed down
  identity/issuer/sign-in: a right password from a browser that signed in before is never held back by what others try
  identity/issuer/sign-in: whatever fails at other addresses, one with no failure lately has a try at an account, and one alone
  identity/issuer/tokens: a flood of device codes from one address is refused for a while
Connections that stay silent
  gateway/limits: 128 idle strangers at one address keep no one at another out, twenty logins at once
  gateway/limits: idle strangers at many addresses keep no one out, also not who logs in for the first time
  gateway/limits: failures are slowed by source, and a registered key that proves itself never waits
  gateway/flood: a flood from many addresses that sends … and nothing more displaces no login that is in its key exchange
  lib/fair-shares: what costs its source something is not displaced by any number that cost nothing, and these keep half the slots
  identity/issuer/sign-in: whatever strangers try, a known browser is served, an address with few tries too, and all are answered
One address cannot take all
  gateway/limits: one source never takes all the unauthenticated connections, and 56 bits of IPv6 are one
  http/connection-limit: one address may hold so many connections, and another is answered as before
They fill neither memory nor the log
  gateway/proxy-protocol: of a connection that waits … nothing is read that a client sends
  gateway/limits: refused connections are a line a source and reason, and their number
  gateway/limits: a login that is refused is a line with its name and key, and a flood of them is summed up
  lib/log: however long the texts of an event are, its line is short
A connection that sends without end
  gateway/flood: a stranger who sends … without end and never reads is cut off, and no one else notices
  gateway/flood: a second key exchange before the login ends the connection
  gateway/barrier: in the folder nothing listens or waits outside a barrier
Malformed packets and stalled readers
  gateway/hostile: a reader that stalls with gigabytes in flight costs less than 8 MB
  gateway/fuzz: fuzz: whatever either side sends, only what the contract supports gets to the other
Where the service is root, the gateway's process
  gateway/process/start: started as root without an account for it, the demonstration’s gateway has a number of its own, which opens no key, no database and no memory of the service
  gateway/process/start: a service that is root and has no account for the gateway, or no setpriv, refuses to start in words
  gateway/process/start: as another account: it holds no rights and no key where others see it, and sessions survive the service all the same
  gateway/process/start: nothing of the service is open in it: no database, no output, and no code of either is loaded
  host/systemd.full: under systemd: ready, alive, reloaded, restarted where that helps and left alone where it does not
  gateway/process/messages: a connection to the service’s socket that says nothing, garbage or too much is closed; logins go on
Each operation asks for its permission
  platform/routes: … …: opens with … and with no other permission
  business/writes: reads
  business/writes: writes
No one gives what they do not hold
  business/permissions: a granter must hold every key that is added, and only those
A key is one person's for good
  business/ssh-keys: a key registered by anyone, revoked or not, is 409 invalid_state for everyone
When access ends, sessions end
  gateway/access: sessions closed by the gateway, forwarded connections and file transfers too: …
  gateway/gateway: what ran on the login node ends too
In a session there is no forwarding
  gateway/gateway: refused: forwarding to non-loopback destinations, with a text that says where to; use as a jump host
  gateway/fuzz: fuzz: forwarding goes to loopback destinations and nowhere else
A member keeps others out neither
  gateway/limits: per-user sessions: one more is refused, and says how many are open
  business/operator/audit: one person cannot fill it with refusals
A login name is one person's
  business/memberships: a frozen username is changed no more, not even after removal and return
A shell on a simulated login node
  sync/login-node/adversary: a session gets no right of another account, whatever the machine grants its name: sudo, su, crontab, at, setuid programs
  sync/login-node/adversary: a session reaches nothing that listens on the machine, and sees no process of it
  sync/login-node/adversary: a session that takes all that it can get leaves the machine its processes, memory and disk, and others their sessions
  sync/login-node/adversary: names that accounts, groups, their members or sudo rules of the machine have are taken
What members choose is data
  sync/slurm: what is wanted goes in as data: nothing in it can become a line, a field or code
  gateway/records: what is kept of a session is bounded, and cannot steer a terminal
manage their organization
  store/invariants: the last owner stays: no change of a role or a membership takes them away
  business/memberships: an admin manages members and admins, and nothing that concerns an owner
Every change has its entry
  business/operator/audit: who, what, on what, why, when, from where, and the result
  business/writes: writes
A grant whose time is up
  sync/sides: a grant that ends by itself is taken away then, and is never read as live after that
  architecture: only store/organizations/grants.ts reads grants, so that no code takes one whose time is up for a live one
Being an operator gives no access
  business/resource-grants: resource-access says by which way a gate is passed
The API takes no path of the host
  business/operator/host-settings: a lab over the API names files below the directory of the configuration, and no others
  business/operator/host-settings: local: true comes from the host only: the seed, or a cluster that clusters.allowLocal names
  business/operator/host-settings: a simulated login node on a service that is root comes from the host only: the seed, or clusters.allowSimulated
One operator always remains
  store/invariants: the last operator stays: neither without the key nor deactivated
Their host key is pinned
  gateway/gateway: a login node …
What they send is checked
  gateway/flood: one that sends pings without end and never reads, after a login, is not read and harms no one
A person's key never leaves
  gateway/gateway: refused: agent forwarding, X11, remote forwarding (-R) and environment variables; -v says so
A host or API server whose key
  slurm/bad-days: a host whose key changed gets nothing, and is named
  sync/known-hosts: a host is taken at its word once, by one server; every other one expects that key
  kubernetes/credentials: a server whose certificate is another authority's is sent nothing
Only what we made is changed
  kubernetes/permissions: a binding that is no longer wanted is removed, and nothing that is not ours is touched
  slurm/accounts: release takes away everything of ours but homes
What they say is one line
  kubernetes/fake-api: other people's words are one line, and not longer than fits
An account is bound to one subject
  identity/binding: a sign-in is bound to an account by its verified email once; another with the same email is refused
Their keys are fetched at most
  identity/authentication: many strangers with key IDs that do not exist are 401, and share one fetch of the keys a second
  identity/authentication: the log says why a request was 401, and nothing of its token
Clocks may differ by a minute
  identity/authentication: clocks may differ by a minute; beyond that the refusal speaks of clocks
  app/clock: an hour forward or back ends no session and refuses no login, and the log says it once each time
  app/clock: a clock that is set back makes no old report new
A service account is not a person
  identity/authentication: a service account … is 401 on Business and 403 on Platform
Of what the built-in issuer signs
  identity/issuer/tokens: of what the embedded issuer signs only a token whose header says at+jwt is an access token
The database holds no token
  identity/issuer/tokens: nothing in the database is a token, a code or a session
  identity/issuer/tokens: a refresh token is good for one use; a second use ends the session
  identity/issuer/refresh: a used refresh token ends the session after the grace, whichever way the clock went
Signing out ends the session
  identity/issuer/pages: signing out ends the session of the cookie, and of every copy of it, over a restart too
New passwords have twelve
  domain/username: what others try first is refused, however it is dressed up
  identity/issuer/sign-in: a new password ends every other browser and every terminal, and stands in the audit trail
  identity/issuer/password: of one moment: what was signed in to before a new password is over, and what came after is not
The issuer's pages run no script but the one for passkeys
  identity/issuer/pages: no page has a script or anything from other origins, and each is sent with a strict policy
  identity/issuer/pages: a form counts only from the browser that was given it
What is stored of a session
  console/sessions: a reader of the database cannot use what is in it
  console/http: the browser holds a cookie that no script reads, and no token
Other sites can make a browser
  console/http: what comes from another site, or from no page of ours, is refused before it is looked at
  console/http: a sign-in leads to no other site, however the slashes are hidden, and a callback counts only for the browser that was sent away
A session ends after an hour
  console/sessions: a session ends after an hour without use, and what a page reads by itself is no use
  console/sessions: a session ends after twelve hours, however used
  console/sessions: who is deactivated is signed out, and stays so
  console/http: a new password ends every session
The console can do what the APIs
  console/http: of the APIs there are the operations, and nothing else
  console/events: a stream says what changed, to those who may know, and ends with the sign-in
  console/events: a stream names a cluster until the grant is revoked or over, and of sign-ins their person only
  console/sessions: an open stream asks whether the person counts, also when the token that it began with has ended
Names from outside are text
  console/chromium: names from outside are text, and axe finds nothing on any page in either scheme
  console/http: the page and its files carry a strict policy; files are for good and packed, the page is asked for anew
An address in a header
  identity/issuer/sign-in: from anyone but a trusted proxy the header chooses no address
A platform that names another's
  cli/auth: a platform that names the issuer of another one gets no token where the issuer says whom it serves
Whatever a server says is data
  cli/hostile-server: nothing that a server says drives the terminal, in tables, JSON, YAML and sentences
  cli/everyday/ssh: nothing that the API says can become a flag of ssh
  cli/everyday/files: a kubeconfig that runs, reaches or names anything else than expected is not used
  cli/everyday/files: kubeconfig --merge replaces nothing that it did not make
A person who has the database
  audit/copy: a trail that was computed again is not signed, neither by the same process nor by the next one
  cli/admin/audit: admin audit verify finds a trail that was computed again or cut, by a head that was signed before
  host/accept-break: a break is accepted on the host only, one by one, and every check says so from then on
No text that is sent breaks
  business/operator/audit: no request to the APIs, whatever its texts are, breaks the chain of the audit trail
The shared database, a dump
  store/secrets: what is stored is encrypted, bound to its name, and not readable when it was changed
  store/secrets: with another key nothing opens and nothing is made, in a sentence that names both
  store/secrets: a secret that is gone is not made anew
  host/secrets: a key of the secrets is made once; without it, or with another, serve ends with 78 and makes nothing
Under systemd the service
  host/service: the unit runs the service as its own account, with its directories and next to no rights
The command that gets each backup
  backup/schedule: it runs once for each backup that is in place, with its path and without a secret in its environment
  backup/schedule: a service that stops ends it with all that it started, and the next one runs it again
A power cut or
  store/campaign: after a power cut all that was answered or shown is there, and no command by half
a listener has TLS
  config/config: refused: …
missing information lets no one in
  gateway/access: when the gateway cannot confirm access: a new login after two minutes without an observation, an open session after five
`;

/** By how a claim begins. */
export const claims = new Map(
  text
    .split(/\n(?! |$)/)
    .slice(1)
    .map((claim) => {
      const [begin = '', ...tests] = claim.trimEnd().split('\n');
      const cited = tests.map((line) => {
        const [file = '', title = ''] = line.trim().split(/: (.*)/);
        return { file, title };
      });
      return [begin, cited] as const;
    }),
);
