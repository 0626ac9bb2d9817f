/** `andromeda admin audit`: the audit trail as JSON lines, and the check that it was not changed. */
import { type ChainedEntry, findBreak } from '../../domain/audit/audit.ts';
import {
  type AuditCheckpoint,
  isAuditPublicKey,
  isSignedCheckpoint,
  isSignedHead,
  type SignedHead,
} from '../../domain/audit/head.ts';
import { visibleLine } from '../../domain/visible-text.ts';
import type { Answer } from '../answer.ts';
import { failure, usage } from '../exit.ts';
import type { Reader } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { printAll } from '../output.ts';
import { parseSince, parseTime } from '../time.ts';
import { optional, reads, repeatable } from '../verb.ts';

type AuditEntry = Business['AuditEntry'];

interface Filter {
  person?: string;
  cluster?: string;
  operation?: string;
  from?: string;
  to?: string;
  since?: string;
}

/** A position in the trail, as noted outside the service. */
interface Head {
  seq: number;
  hash: string;
}

const pageSize = 500;

/** The trail page by page, oldest entry first. */
async function* pages(
  api: Reader,
  filter: Record<string, string | undefined>,
  start = 0,
): AsyncGenerator<AuditEntry[]> {
  let after = start;
  for (;;) {
    const query = { ...filter, limit: pageSize, after };
    const { entries } = await api.get('/operator/audit', { query });
    if (entries.length > 0) yield entries;
    const last = entries.at(-1);
    if (!last || entries.length < pageSize) return;
    after = last.seq;
  }
}

export const audit = reads<Filter>({
  usage: 'audit',
  summary: 'print the audit trail as JSON lines, oldest entry first',
  example: 'audit --person bob@physics.example --since 7d',
  flags: [
    optional('--person <email>', 'what this person did, and what was done to them (or a user ID)'),
    optional('--cluster <name>', 'what concerns this cluster (or its ID)'),
    optional('--operation <name>', 'what was done, such as revokeSshKey; "ssh.*" is all that begins so'),
    optional('--from <time>', 'not before'),
    optional('--to <time>', 'before'),
    optional('--since <span>', 'not longer ago than, such as 2h').conflicts('from'),
  ],
  formats: ['json'],
  async run({ api, options: { person, cluster, operation, from, to, since } }) {
    const filter = {
      from: since === undefined ? parseTime('--from', from) : parseSince('--since', since, Date.now()),
      to: parseTime('--to', to),
      person,
      cluster,
      operation,
    };
    for await (const entries of pages(api, filter))
      await printAll(entries.map((entry) => JSON.stringify(entry)));
    return undefined;
  },
});

export const auditHead = reads({
  usage: 'head',
  summary: 'print the head of the audit trail as it is now, signed; note it elsewhere',
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
    'print the public key that signs heads of the audit trail; note it elsewhere, for `audit verify --key`',
  example: 'audit key > audit.key',
  formats: ['text', 'json', 'yaml'],
  async run({ api }): Promise<Answer> {
    const { key } = await api.get('/operator/audit/heads');
    return { json: { key }, text: visibleLine(key) };
  },
});

export const verifyAudit = reads<{ head?: string; key?: string[] }>({
  usage: 'verify',
  summary:
    'check the whole audit trail and its signed heads; note the head it prints elsewhere, and give it next time',
  example: 'audit verify --head "$(cat head)"',
  flags: [
    optional('--head <seq:hash>', 'a head noted earlier, which must still be in the trail'),
    repeatable('--key <key>', 'a key noted earlier: one of these must have signed every head'),
  ],
  formats: ['text', 'json', 'yaml'],
  async run({ api, options }): Promise<Answer> {
    const noted = options.head === undefined ? undefined : parseHead(options.head);
    for (const key of options.key ?? [])
      if (!isAuditPublicKey(key))
        throw usage(`'${key}' is not a key as \`andromeda admin audit key\` prints it.`);
    const { key, heads, checkpoint } = await api.get('/operator/audit/heads');
    const keys = options.key ?? [key];
    requireSigned(heads, keys);
    if (checkpoint) requireCheckpoint(checkpoint, keys, noted);
    const hashes = new Map(heads.map((head) => [head.seq, head.hash]));
    let last: Head = { seq: checkpoint?.seq ?? 0, hash: checkpoint?.hash ?? '' };
    let redacted = 0;
    const accepted: number[] = [];
    for await (const entries of pages(api, {}, last.seq)) {
      const page = entries.map(asChained);
      redacted += page.filter(({ redaction }) => redaction && !redaction.accepted).length;
      accepted.push(...page.filter(({ redaction }) => redaction?.accepted).map(({ seq }) => seq));
      const broken = findBreak(last, page, (one) => keys.includes(one));
      if (broken) {
        const now = await api.get('/operator/audit/heads');
        if (now.checkpoint?.seq !== checkpoint?.seq)
          throw failure('Old entries were deleted meanwhile (retention.audit); run this again.');
        throw failure(
          `Entry ${broken.seq} is the first that does not fit: it was changed, or what stood before it. Once you know why, \`andromeda admin audit accept-break ${broken.seq}\` on the host has the trail go on behind it.`,
        );
      }
      for (const { seq, hash } of page) {
        if (seq === noted?.seq) requireSame(hash, noted);
        if (hashes.has(seq) && hashes.get(seq) !== hash)
          throw failure(`The trail was rewritten: entry ${seq} is not the one that was signed.`);
      }
      last = page.at(-1) ?? last;
    }
    if (noted && noted.seq > last.seq)
      throw failure(
        `The trail was cut: it ends at entry ${last.seq}, and entry ${noted.seq} was noted earlier.`,
      );
    const signed = heads.at(-1)?.seq ?? 0;
    if (signed > last.seq)
      throw failure(`The trail was cut: it ends at entry ${last.seq}, and entry ${signed} was signed.`);
    const head = `${last.seq}:${last.hash}`;
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
      message: [
        signed === 0 ? 'No head is signed yet.' : `Signed up to entry ${signed}.`,
        checkpoint && `Entries up to ${checkpoint.seq} were deleted at ${visibleLine(checkpoint.at)}.`,
        redacted > 0 && `Texts of ${redacted === 1 ? '1 entry' : `${redacted} entries`} were replaced.`,
        accepted.length > 0 && acceptedText(accepted),
      ]
        .filter(Boolean)
        .join(' '),
    };
  },
});

/** Each head must be signed, and with one of these keys. */
function requireSigned(heads: readonly SignedHead[], keys: readonly string[]): void {
  for (const head of heads) {
    if (!keys.includes(head.key))
      throw failure(
        `The head of entry ${head.seq} is signed with another key, ${visibleLine(head.key)}. If that was yours, give all of them with --key.`,
      );
    if (!isSignedHead(head)) throw failure(`The signature of the head of entry ${head.seq} is wrong.`);
  }
}

/** The beginning of a trail whose older entries were deleted. An entry noted earlier may be among those. */
function requireCheckpoint(
  checkpoint: AuditCheckpoint,
  keys: readonly string[],
  noted: Head | undefined,
): void {
  if (!keys.includes(checkpoint.key))
    throw failure(
      `The checkpoint of entry ${checkpoint.seq} is signed with another key, ${visibleLine(checkpoint.key)}. If that was yours, give all of them with --key.`,
    );
  if (!isSignedCheckpoint(checkpoint))
    throw failure(
      `The trail was cut: the signature of the checkpoint at which it begins, entry ${checkpoint.seq}, is wrong.`,
    );
  if (noted?.seq === checkpoint.seq) requireSame(checkpoint.hash, noted);
}

function acceptedText(accepted: readonly number[]): string {
  const named = `${accepted.slice(0, 20).join(', ')}${accepted.length > 20 ? ', …' : ''}`;
  return `The chain broke at ${accepted.length === 1 ? 'entry' : 'entries'} ${named}, which was accepted on the host: \`andromeda admin audit --operation acceptAuditBreak\` says when.`;
}

function requireSame(hash: string | undefined, noted: Head): void {
  if (hash !== undefined && hash !== noted.hash)
    throw failure(`The trail was rewritten: entry ${noted.seq} is not the one noted earlier.`);
}

function asChained(entry: AuditEntry): ChainedEntry {
  return { command_id: null, organization_id: null, cluster_id: null, subject_user_id: null, ...entry };
}

function parseHead(text: string): Head {
  const [, seq, hash = ''] = /^(\d{1,15}):(sha256:[0-9a-f]{64})?$/.exec(text) ?? [];
  if (seq === undefined || (hash === '') !== (Number(seq) === 0))
    throw usage(`'${text}' is not a head as \`andromeda admin audit verify\` prints it.`);
  return { seq: Number(seq), hash };
}
