/**
 * Proof of the audit trail outside of the database: heads signed with a key of the installation, and a copy of trail
 * and heads in a file. It reads the trail; only retention writes to it.
 *
 * Flow: operations write entries → `signer.ts` signs a head at intervals, on demand and at the end → `copy.ts`
 * appends entries and heads to a file → `retention.ts` deletes old entries, up to a signed checkpoint. Of several
 * servers the leader does all that, and any signs on demand.
 */
import { type AuditKey, type SignedHead, trustedKeys } from '../../domain/audit/audit.ts';
import type { HeldKeys } from '../../domain/key-rotation.ts';
import { messageOf } from '../../lib/error-message.ts';
import type { Logger } from '../../lib/log.ts';
import { type Rounds, startRounds } from '../../lib/rounds.ts';
import type { Store } from '../../store/engine/index.ts';
import { type AuditFault, startCopy } from './copy.ts';
import { startErasures } from './erasure.ts';
import { applyRetention, type RetentionDeps, type RetentionSettings } from './retention.ts';
import { type AuditSigner, createSigner } from './signer.ts';

interface AuditConfig {
  signMs: number;
  /** The file for the copy, and the ID of the group that may read it; undefined: none. */
  file: string | undefined;
  group: number | undefined;
}

export interface AuditDeps {
  store: Store;
  /** The keys that are valid now. */
  keys(): HeldKeys<AuditKey>;
  /** Left out: everything is kept. */
  retention?: RetentionSettings;
  log: Logger;
  now(): number;
}

export interface Audit {
  /** Public keys whose signatures are trusted; that of the signing key first. */
  publicKeys(): readonly string[];
  /** The signed head of the trail as it is now; undefined while there is no entry. Throws as `AuditSigner.sign`. */
  sign(): Promise<SignedHead | undefined>;
  /** The mark that is kept of an erased person's identity, made with the installation's key. */
  markIdentity: AuditKey['markIdentity'];
  /** Removes erased people from the trail, in the background. */
  eraseNames(): void;
  /** Faults of the trail that this server knows; empty where another server keeps it. */
  faults(): AuditFaults;
  /**
   * Keeps the trail from now on, through this store. Returns a function that stops: with `last`, it first signs and
   * copies the rest, within about a second. Must stop after everything that writes entries.
   */
  keep(by: Store): (last: boolean) => Promise<void>;
}

/** The reasons why no head is signed, and why the copy in the file is behind. */
export type AuditFaults = Partial<Record<'signing' | 'copy', AuditFault | undefined>>;

const retentionFirstMs = 5_000;
const retentionMs = 86_400_000;
const minuteMs = 60_000;

export function createAudit(config: AuditConfig, deps: AuditDeps): Audit {
  const { store, keys, now } = deps;
  const signer = createSigner(store, keys, now);
  let keeping: ReturnType<typeof keepTrail> | undefined;
  return {
    publicKeys: () => trustedKeys(keys()),
    sign: () => signer.sign(),
    markIdentity: (issuer, subject) => keys().used.markIdentity(issuer, subject),
    eraseNames() {
      if (keeping) keeping.erasures.wake();
      // A lost message does no harm: the erasure is found within a minute.
      else store.messages.send(erasureTopic, {}).catch(() => {});
    },
    faults: () => keeping?.faults() ?? {},
    keep(by) {
      const own = keepTrail(config, { ...deps, store: by, signer });
      keeping = own;
      const stopListening = store.messages.on(erasureTopic, own.erasures.wake);
      return async (last) => {
        stopListening();
        if (keeping === own) keeping = undefined;
        await own.stop(last);
      };
    },
  };
}

const erasureTopic = 'erasures';

/** The background work on the trail. */
function keepTrail(
  config: AuditConfig,
  { store, keys, signer, retention = {}, log, now }: AuditDeps & { signer: AuditSigner },
) {
  let failing: AuditFault | undefined;
  const key = () => keys().used;

  async function signNow(): Promise<void> {
    try {
      await signer.sign(store);
      failing = undefined;
    } catch (error) {
      const { message } = error as Error;
      // Logged once, not at every interval.
      if (message !== failing?.message) log.error('audit.sign.failed', { error: message });
      failing = { since: failing?.since ?? now(), message };
    }
  }

  const { file, group, signMs } = config;
  // Also runs at the start: finds changes to the trail that were made while no service ran.
  const signing = startRounds(signNow, { everyMs: signMs, onFault() {} });
  const copy = file === undefined ? undefined : startCopy(store, { path: file, group }, { log, now });
  const erasures = startErasures({ store, key, log, now });
  const retaining = startRetention({ store, key, signer, file, log }, retention);
  return {
    erasures,
    faults: (): AuditFaults => ({ signing: failing, copy: copy?.fault }),
    /** With `last`, first signs and copies the rest. */
    async stop(last: boolean) {
      await Promise.all([signing.stop(), retaining?.stop(), erasures.stop()]);
      if (last) await signNow();
      await copy?.stop(last);
    },
  };
}

/** Runs retention shortly after the start, when all other parts have started, and once a day. */
function startRetention(deps: RetentionDeps, settings: RetentionSettings): Rounds | undefined {
  const { commands, sessions, audit } = settings;
  if (commands === undefined && sessions === undefined && audit === undefined) return undefined;
  const startedAt = performance.now();
  // The next day's run may come a little early.
  const isNew = () => performance.now() - startedAt < retentionMs - minuteMs;
  return startRounds((stopping) => applyRetention({ ...deps, isNew }, settings, stopping), {
    firstMs: retentionFirstMs,
    everyMs: retentionMs,
    onFault: (error) => deps.log.error('retention.failed', { error: messageOf(error) }),
  });
}
