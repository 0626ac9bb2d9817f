/** `andromeda admin audit`: prints the audit trail as JSON lines or sentences, and verifies that it was not changed. */
import {
  type AuditCheckpoint,
  type ChainedEntry,
  findBreak,
  isAuditPublicKey,
  isSignedCheckpoint,
  isSignedHead,
  type SignedHead,
} from '../../domain/audit/audit.ts';
import { sentenceText } from '../../domain/audit/sentence.ts';
import { visibleLine } from '../../domain/text.ts';
import { parseStart, parseTime } from '../arguments.ts';
import { failure, usage } from '../exit.ts';
import { type Business, pagesBySeq, type Reader } from '../net/api.ts';
import { type Answer, printAll } from '../output.ts';
import { optional, reads, repeatable } from '../verb.ts';

type AuditEntry = Business['AuditEntry'];

interface AuditFilter {
  person?: string;
  cluster?: string;
  operation?: string;
  from?: string;
  to?: string;
  since?: string;
  refused?: true;
  done?: true;
  human?: true;
}

interface Head {
  seq: number;
  hash: string;
}

type ExpectedHead = Head & { because: 'noted earlier' | 'signed' };

function entries(api: Reader, filter: Record<string, string | undefined>, start = 0) {
  return pagesBySeq(
    async (page) => (await api.get('/operator/audit', { query: { ...filter, ...page } })).entries,
    start,
  );
}

export const audit = reads<AuditFilter>({
  usage: 'audit',
  summary: 'print the audit trail as JSON lines or sentences, oldest entry first',
  example: 'audit --person bob@physics.example --since 7d',
  flags: [
    optional('--person <email>', 'what this person did, and what was done to them (or a user ID)'),
    optional('--cluster <name>', 'what concerns this cluster (or its ID)'),
    optional('--operation <name>', 'what was done, such as revokeSshKey; "ssh.*" is all that begins so'),
    optional('--from <time>', 'not before'),
    optional('--to <time>', 'before'),
    optional('--since <span>', 'not longer ago than, such as 2h').conflicts('from'),
    optional('--refused', 'only what was refused'),
    optional('--done', 'only what was done').conflicts('refused'),
    optional('--human', 'a sentence for each entry: who did what to whom, and why'),
  ],
  formats: ['json'],
  async run({ api, options: { from, to, since, refused, done, human, ...about } }) {
    const { person, cluster, operation } = about;
    const result = refused ? 'refused' : done && 'done';
    const filter = {
      from: parseStart(from, since),
      to: parseTime('--to', to),
      person,
      cluster,
      operation,
      result,
    };
    const line = human ? humanLine : (entry: AuditEntry) => JSON.stringify(entry);
    for await (const page of entries(api, filter)) await printAll(page.map(line));
    return undefined;
  },
});

export const auditHead = reads({
  usage: 'head',
  summary: 'print the head of the audit trail as it is now, signed; keep it outside the service',
  example: 'audit head >> /mnt/elsewhere/heads',
  formats: ['text', 'json', 'yaml'],
  async run({ api }): Promise<Answer> {
    const json = await api.get('/operator/audit/head');
    const { seq, hash, at, key, signature } = json;
    const text = `head ${seq}:${hash}\ntime ${at}\nsignature ${signature}\nkey ${key}`;
    return { json, text: text.split('\n').map(visibleLine).join('\n') };
  },
});

export const auditKey = reads({
  usage: 'key',
  summary:
    'print the public keys whose signatures on the audit trail count, the one in use first; keep them outside the service',
  example: 'audit key > audit.key',
  formats: ['text', 'json', 'yaml'],
  async run({ api }): Promise<Answer> {
    const { key, other_keys } = await api.get('/operator/audit/heads');
    return { json: { key, other_keys }, text: [key, ...other_keys].map(visibleLine).join('\n') };
  },
});

export const verifyAudit = reads<{ head?: string; key?: string[] }>({
  usage: 'verify',
  summary:
    'check the whole audit trail and its signed heads; keep the head it prints outside the service, and give it next time',
  example: 'audit verify --head "$(cat head)"',
  flags: [
    optional('--head <seq:hash>', 'a head noted earlier, which must still be in the trail'),
    repeatable('--key <key>', 'a key noted earlier: one of these must have signed every head'),
  ],
  formats: ['text', 'json', 'yaml'],
  async run({ api, options }): Promise<Answer> {
    const noted = options.head === undefined ? [] : [parseHead(options.head)];
    const given = options.key?.flatMap((text) => text.trim().split(/\s+/));
    for (const key of given ?? [])
      if (!isAuditPublicKey(key))
        throw usage(`'${key}' is not a key as \`andromeda admin audit key\` prints it.`);
    const { key, other_keys, heads, checkpoint } = await api.get('/operator/audit/heads');
    const keys = given ?? [key, ...other_keys];
    for (const head of heads) {
      requireKey('head', head, keys);
      if (!isSignedHead(head)) throw failure(`The signature of the head of entry ${head.seq} is wrong.`);
    }
    const expected: ExpectedHead[] = [
      ...noted,
      ...heads.map(({ seq, hash }) => ({ seq, hash, because: 'signed' as const })),
    ];
    if (checkpoint) requireCheckpoint(checkpoint, keys, noted);
    const { last, redacted, accepted } = await readTrail(api, checkpoint, keys, expected);
    const signed = heads.at(-1)?.seq ?? 0;
    for (const { seq, because } of [...noted, ...expected.slice(-1)])
      if (seq > last.seq)
        throw failure(`The trail was cut: it ends at entry ${last.seq}, and entry ${seq} was ${because}.`);
    const head = `${last.seq}:${last.hash}`;
    const sentences = [
      signed === 0 ? 'No head is signed yet.' : `Signed up to entry ${signed}.`,
      checkpoint && `Entries up to ${checkpoint.seq} were deleted at ${visibleLine(checkpoint.at)}.`,
      redacted > 0 && `Texts of ${redacted === 1 ? '1 entry' : `${redacted} entries`} were replaced.`,
      accepted.length > 0 && acceptedText(accepted),
    ];
    return {
      json: {
        entries: last.seq,
        head,
        signed,
        ...(checkpoint && { checkpoint: checkpoint.seq }),
        ...(redacted > 0 && { redacted }),
        ...(accepted.length > 0 && { accepted }),
      },
      text: `entries ${last.seq}\nhead ${head}`,
      message: sentences.filter(Boolean).join(' '),
    };
  },
});

/** Reads the trail from the checkpoint. Returns its last entry and the redacted and accepted ones; throws at the first break. */
async function readTrail(
  api: Reader,
  checkpoint: AuditCheckpoint | undefined,
  keys: readonly string[],
  expected: readonly ExpectedHead[],
) {
  const expectedAt = Map.groupBy(expected, ({ seq }) => seq);
  let last: Head = { seq: checkpoint?.seq ?? 0, hash: checkpoint?.hash ?? '' };
  let redacted = 0;
  const accepted: number[] = [];
  for await (const read of entries(api, {}, last.seq)) {
    const page = read.map(asChained);
    redacted += page.filter(({ redaction }) => redaction && !redaction.accepted).length;
    accepted.push(...page.filter(({ redaction }) => redaction?.accepted).map(({ seq }) => seq));
    const broken = findBreak(last, page, (key) => keys.includes(key));
    if (broken) {
      const now = await api.get('/operator/audit/heads');
      if (now.checkpoint?.seq !== checkpoint?.seq)
        throw failure('Old entries were deleted meanwhile (retention.audit); run this again.');
      throw failure(
        `Entry ${broken.seq} is the first that does not fit: it was changed, or what stood before it. Once you know why, \`andromeda admin audit accept-break ${broken.seq}\` on the host has the trail go on behind it.`,
      );
    }
    for (const { seq, hash } of page) requireSame(hash, expectedAt.get(seq) ?? []);
    last = page.at(-1) ?? last;
  }
  return { last, redacted, accepted };
}

function requireKey(what: string, { seq, key }: SignedHead, keys: readonly string[]): void {
  if (!keys.includes(key))
    throw failure(
      `The ${what} of entry ${seq} is signed with another key, ${visibleLine(key)}. If that was yours, give all of them with --key.`,
    );
}

/** Checks the signed checkpoint from which a shortened trail continues. A noted head may be of its last deleted entry. */
function requireCheckpoint(
  checkpoint: AuditCheckpoint,
  keys: readonly string[],
  noted: readonly ExpectedHead[],
): void {
  requireKey('checkpoint', checkpoint, keys);
  if (!isSignedCheckpoint(checkpoint))
    throw failure(
      `The trail was cut: the signature of the checkpoint at which it begins, entry ${checkpoint.seq}, is wrong.`,
    );
  const same = noted.filter(({ seq }) => seq === checkpoint.seq);
  requireSame(checkpoint.hash, same);
}

function requireSame(found: string, expected: readonly ExpectedHead[]): void {
  for (const { seq, hash, because } of expected) {
    const which = because === 'signed' ? 'that was signed' : because;
    if (hash !== found) throw failure(`The trail was rewritten: entry ${seq} is not the one ${which}.`);
  }
}

function acceptedText(accepted: readonly number[]): string {
  const named = `${accepted.slice(0, 20).join(', ')}${accepted.length > 20 ? ', …' : ''}`;
  return `The chain broke at ${accepted.length === 1 ? 'entry' : 'entries'} ${named}, which was accepted on the host: \`andromeda admin audit --operation acceptAuditBreak\` says when.`;
}

function humanLine(entry: AuditEntry): string {
  const { at, source_address: address } = entry;
  const time = `${at.slice(0, 19).replace('T', ' ')}Z`;
  return visibleLine(`${time}  ${sentenceText(entry)}${address && ` [${address}]`}`);
}

function asChained(entry: AuditEntry): ChainedEntry {
  return { command_id: null, organization_id: null, cluster_id: null, subject_user_id: null, ...entry };
}

function parseHead(text: string): ExpectedHead {
  const [, seq, hash = ''] = /^(\d{1,15}):(sha256:[0-9a-f]{64})?$/.exec(text) ?? [];
  if (seq === undefined || (hash === '') !== (Number(seq) === 0))
    throw usage(`'${text}' is not a head as \`andromeda admin audit verify\` prints it.`);
  return { seq: Number(seq), hash, because: 'noted earlier' };
}
