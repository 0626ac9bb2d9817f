/** `andromeda admin problems`, `installation`, `gateway`, `session`, `servers`: the state of the service and its parts. */
import { csv, visibleLine } from '../../domain/text.ts';
import { parseStart, parseTime } from '../arguments.ts';
import { usage } from '../exit.ts';
import { type Business, pagesBySeq } from '../net/api.ts';
import { type Answer, formatPairs, formatTable, printAll, printer } from '../output.ts';
import { changesOne, lists, type Noun, optional, reads, required } from '../verb.ts';

const serverTable = printer<Business['Server']>(
  {
    NAME: (row) => row.name,
    STATE: (row) =>
      [row.state, ...(row.leads ? ['leads'] : []), ...(row.answers ? ['answers'] : [])].join(', '),
    VERSION: (row) => row.version,
    STARTED: (row) => row.started_at,
    SEEN: (row) => row.seen_at,
    ID: (row) => row.id,
  },
  'There are no servers.',
);

export const servers: Noun = {
  name: 'servers',
  summary: 'the servers that share the database',
  verbs: [
    lists('every server, and those that ended without a word within a day', serverTable, 'servers', (api) =>
      api.get('/operator/servers'),
    ),
  ],
};

const keyFile = '/etc/ssh/andromeda_gateway.pub';

interface SshdNeeds {
  /** The gateway's public keys: several during a key rotation. */
  publicKeys: readonly string[];
  from: string;
  manage?: string;
  /** A cluster lets people log in directly for some time. */
  hasDirect: boolean;
}

export function sshdLines({ publicKeys, from, manage, hasDirect }: SshdNeeds): string {
  return `# What Andromeda needs of sshd on a login node. Keep this as /etc/ssh/sshd_config.d/10-andromeda.conf and ${publicKeys.length > 1 ? 'these lines' : 'this line'}
# as ${keyFile} (owned by root, mode 644):
#
${publicKeys.map((key) => `#   ${key}`).join('\n')}
#
# Then check it with "sshd -t", and reload sshd. From other addresses people do not come in at
# all: the keys in their own authorized_keys would go round the gateway, also when they are revoked.

# Everyone comes from the gateway's address, so that one address starts many logins at once.
MaxStartups 1000:30:2000
# With OpenSSH 9.8 and later take the # away: one person's failures must not shut out everyone behind the gateway.
#PerSourcePenaltyExemptList ${from}
${manage === undefined ? '' : managing(manage, from)}
Match Address ${from}
    # The gateway has checked the person's own key; here its key alone opens the accounts, and no password does.
    AuthorizedKeysFile ${keyFile}
    AuthorizedKeysCommand none
    TrustedUserCAKeys none
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

# Everyone else's own keys open nothing, nor does a password or a certificate. Add accounts of your own that are to keep theirs, as ",!ubuntu".
Match User *,!root${manage === undefined || manage === 'root' ? '' : `,!${manage}`}
    AuthorizedKeysFile none
${hasDirect ? direct : '    AuthorizedKeysCommand none'}
    TrustedUserCAKeys none
    AuthenticationMethods publickey

Match all`;
}

/** sshd runs this at each login: so the list of people is in force without a reload, and lets no one in where it is missing. */
const direct = `    # But for people on the list that Andromeda keeps here, until its last day. What follows %h is where people have
    # their keys on this machine, as its AuthorizedKeysFile has it; with sssd's: -- /usr/bin/sss_ssh_authorizedkeys %u
    AuthorizedKeysCommand /bin/sh /etc/ssh/andromeda-direct/keys %u %h .ssh/authorized_keys
    AuthorizedKeysCommandUser root`;

/** Goes before the lines for people, as sshd uses the first match: the gateway's key must not open this account. */
function managing(user: string, from: string): string {
  return `
Match User ${user} Address ${from}
    # Andromeda manages this machine from there, with a key of its own.
    AuthorizedKeysFile .ssh/authorized_keys
    AuthenticationMethods publickey
    PermitRootLogin prohibit-password
`;
}

function publicKeys(answer: { public_key: string; other_public_keys: readonly string[] }): string[] {
  return [answer.public_key, ...answer.other_public_keys];
}

export const gateway: Noun = {
  name: 'gateway',
  summary: 'the SSH gateway, as login nodes know it',
  verbs: [
    reads({
      usage: 'key',
      summary:
        "print the gateway's public key, for login nodes to trust: one line, OpenSSH format; while one key takes the place of another, a line for each",
      example: 'gateway key > gateway.pub',
      formats: ['text', 'json', 'yaml'],
      async run({ api }) {
        const json = await api.get('/operator/gateway');
        return { json, text: publicKeys(json).map(visibleLine).join('\n') };
      },
    }),
    reads<{ from: string; manage?: string }>({
      usage: 'sshd',
      summary: 'print what the sshd of a login node needs, as lines for its configuration',
      example: 'gateway sshd --from 10.0.0.1 > 10-andromeda.conf',
      formats: ['text', 'json', 'yaml'],
      flags: [
        required(
          '--from <addresses>',
          'where the gateway connects from: IP addresses or networks, with commas',
        ),
        optional('--manage <user>', 'the account that manages the machine from there, as in the lab file'),
      ],
      async run({ api, options: { from, manage } }) {
        if (!/^[0-9a-fA-F.:]+(\/\d{1,3})?(,[0-9a-fA-F.:]+(\/\d{1,3})?)*$/.test(from))
          throw usage(`'${from}' is not a list of IP addresses or networks.`);
        if (manage !== undefined && !/^[A-Za-z_][A-Za-z0-9._-]{0,31}$/.test(manage))
          throw usage(`'${manage}' is not the name of an account.`);
        const keys = publicKeys(await api.get('/operator/gateway')).map(visibleLine);
        const { clusters } = await api.get('/operator/clusters');
        const hasDirect = clusters.some(({ direct }) => direct !== undefined);
        const text = sshdLines({ publicKeys: keys, from, hasDirect, ...(manage && { manage }) });
        return { json: { sshd_config: text }, text };
      },
    }),
  ],
};

type Installation = Business['Installation'];

const table = printer<Business['Problem']>(
  {
    SINCE: (row) => row.since,
    ABOUT: (row) => [row.about, row.side].filter(Boolean).join(' '),
    URGENCY: (row) => (row.urgency === 'now' ? 'urgent' : row.urgency),
    'NEXT-TRY': (row) => row.next_try_at,
    PROBLEM: (row) => row.message,
    'TO-DO': (row) => row.action,
  },
  'Nothing needs attention.',
);

export const problems = reads({
  usage: 'problems',
  summary: 'what needs attention: clusters, the service and its host, newest first',
  async run({ api }): Promise<Answer> {
    const json = await api.get('/operator/problems');
    return table.many(json, json.problems);
  },
});

export const installation = reads({
  usage: 'installation',
  summary: "the service's own keys, those that are being replaced too, and its backups",
  formats: ['text', 'json', 'yaml'],
  async run({ api }): Promise<Answer> {
    const json = await api.get('/operator/installation');
    return { json, text: `${describeKeys(json)}\n\n${describeBackup(json)}` };
  },
});

function describeKeys({ keys }: Installation): string {
  const rows = keys.flatMap(({ kind, current, next, former }) => [
    [kind, 'in use', current.id, undefined, current.until],
    ...(next ? [[kind, 'next', next.id, next.from, undefined]] : []),
    ...(former ? [[kind, 'former', former.id, undefined, former.until]] : []),
  ]);
  return formatTable(['KEY', 'STATE', 'ID', 'USED-FROM', 'HOLDS-UNTIL'], rows);
}

function describeBackup({ backup: { schedule, last, kept, failure, drill } }: Installation): string {
  return formatPairs([
    ['Backups to', schedule?.to ?? 'none by themselves'],
    ['Last', last && `${last.at}  ${last.file}`],
    ['Kept and read back', kept && `${kept.at}  ${kept.file}`],
    ['Next due', schedule?.due_at],
    ['Failed', failure && `${failure.failures} times, at ${failure.at}: ${failure.message}`],
    ['Rehearsed', drill && `${drill.at}  ${drill.file}${drill.good ? '' : ', and it was not good'}`],
  ]);
}

const sessionTable = printer<Business['Session']>(
  {
    LOGIN: (row) => row.login_name,
    FROM: (row) => row.remote_address,
    NODE: (row) => row.login_node,
    OPENED: (row) => row.opened_at,
    CHANNELS: (row) => row.channels,
    UP: (row) => row.bytes_up,
    DOWN: (row) => row.bytes_down,
    ID: (row) => row.id,
  },
  'There are no open sessions.',
);

type PastSession = Business['PastSession'];

interface PastFilter {
  person?: string;
  cluster?: string;
  address?: string;
  key?: string;
  from?: string;
  to?: string;
  since?: string;
  output?: string;
}

const pastColumns = [
  ...['seq', 'id', 'username', 'user_id', 'cluster_id', 'login_node', 'remote_address', 'key_id'],
  ...['fingerprint', 'opened_at', 'closed_at', 'end_reason', 'bytes_up', 'bytes_down', 'channels', 'shells'],
  ...['file_transfers', 'command_count', 'commands', 'forward_count', 'forwards', 'job', 'job_node'],
] as (keyof PastSession)[];

const past = reads<PastFilter>({
  usage: 'past',
  summary: 'SSH sessions that are over, the last that ended first, as JSON lines or CSV',
  example: 'session past --person bob@physics.example --since 7d',
  flags: [
    optional('--person <email>', 'sessions of this person (or a user ID)'),
    optional('--cluster <name>', 'sessions on this cluster (or its ID)'),
    optional('--address <ip>', 'sessions from this address'),
    optional('--key <fingerprint>', 'sessions with this key (or its ID)'),
    optional('--from <time>', 'that had not ended before'),
    optional('--to <time>', 'that were opened before'),
    optional('--since <span>', 'that had not ended longer ago than, such as 2h').conflicts('from'),
  ],
  formats: ['json', 'csv'],
  async run({ api, options: { from, to, since, output, person, cluster, address, key } }) {
    const filter = {
      ...{ person, cluster, address, key },
      from: parseStart(from, since),
      to: parseTime('--to', to),
    };
    if (output === 'csv') await printAll([csv([pastColumns]).trimEnd()]);
    const readPage = (page: object) => api.get('/operator/sessions/past', { query: { ...filter, ...page } });
    for await (const page of pagesBySeq(async (page) => (await readPage(page)).sessions))
      await printAll(page.map((one) => (output === 'csv' ? rowOf(one) : JSON.stringify(one))));
    return undefined;
  },
});

function rowOf(one: PastSession): string {
  const cells = pastColumns.map((name) => {
    const value = one[name] ?? '';
    return Array.isArray(value) ? value.join('\n') : value;
  });
  return csv([cells]).trimEnd();
}

export const session: Noun = {
  name: 'session',
  summary: 'SSH sessions, open ones and those that are over',
  verbs: [
    lists('every open SSH session', sessionTable, 'sessions', (api) => api.get('/operator/sessions')),
    past,
    changesOne(
      'session',
      'close',
      'close an SSH session; the person sees the reason',
      sessionTable,
      (api, id) => api.post('/operator/sessions/{sessionID}/close', { path: { sessionID: id } }),
      'maintenance at noon',
    ),
  ],
};
