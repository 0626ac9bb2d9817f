/** What the sshd of a login node needs to take people from the gateway, as lines for its configuration. */

/** The file on the login node that holds the gateway's public key. */
const keyFile = '/etc/ssh/andromeda_gateway.pub';

export interface SshdNeeds {
  /** The gateway's, a line each: several while one takes the place of another. */
  publicKeys: readonly string[];
  /** The addresses that it connects from, as sshd's Match takes them. */
  from: string;
  /** The account that manages the host from there, where it does. */
  manage?: string;
}

/** The lines, without a last newline. */
export function sshdLines({ publicKeys, from, manage }: SshdNeeds): string {
  return `# What Andromeda needs of sshd on a login node. Keep this as /etc/ssh/sshd_config.d/10-andromeda.conf and ${publicKeys.length > 1 ? 'these lines' : 'this line'}
# as ${keyFile} (owned by root, mode 644):
#
${publicKeys.map((key) => `#   ${key}`).join('\n')}
#
# Then check it with "sshd -t", and reload sshd. From elsewhere people do not come in at
# all: the keys in their own authorized_keys would go round the gateway, also when they are revoked.

# Everyone comes from the gateway's address, so that one address starts many logins at once.
MaxStartups 1000:30:2000
# With OpenSSH 9.8 and later take the # away: one person's failures must not shut out everyone behind the gateway.
#PerSourcePenaltyExemptList ${from}
${manage === undefined ? '' : managing(manage, from)}
Match Address ${from}
    # The gateway has checked the person's own key; here its key alone opens the accounts, and no password does.
    # There is no certificate authority to trust: TrustedUserCAKeys is not used.
    AuthorizedKeysFile ${keyFile}
    AuthenticationMethods publickey
    PermitRootLogin no
    # People forward ports of the login node's loopback; what the gateway refuses is refused here once more.
    AllowTcpForwarding local
    AllowStreamLocalForwarding no
    GatewayPorts no
    AllowAgentForwarding no
    X11Forwarding no
    PermitTunnel no
    # One connection of the gateway is one of a person, who may open many sessions on it.
    MaxSessions 512

# Everyone else's own keys open nothing. Add accounts of your own that are to keep theirs, as ",!ubuntu".
Match User *,!root${manage === undefined || manage === 'root' ? '' : `,!${manage}`}
    AuthorizedKeysFile none

Match all`;
}

/** Before the lines for people, as sshd takes the first that it finds: the gateway's key must not open this account. */
function managing(user: string, from: string): string {
  return `
Match User ${user} Address ${from}
    # Andromeda manages this machine from there, with a key of its own.
    AuthorizedKeysFile .ssh/authorized_keys
    AuthenticationMethods publickey
    PermitRootLogin prohibit-password
`;
}
