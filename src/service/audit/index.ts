/**
 * What makes the audit trail hold outside of the database: heads signed with a key of the installation, and a copy of
 * trail and heads in a file. It reads the trail; only retention writes to it.
 *
 * Flow: operations write entries → `signer.ts` signs a head at intervals, on demand and at the end →
 * `copy.ts` appends entries and heads to a file → `retention.ts` deletes what is old, up to a signed checkpoint. Of several servers the leader does
 * all that, and any signs on demand.
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
  /** The file that gets a copy, and the ID of the group that may read it; undefined: none. */
  file: string | undefined;
  group: number | undefined;
}

export interface AuditDeps {
  store: Store;
  /** Those that hold now. */
  keys(): HeldKeys<AuditKey>;
  /** Left out: everything is kept. */
  retention?: RetentionSettings;
  log: Logger;
  now(): number;
}

export interface Audit {
  /** Those whose signatures count, that of the key that signs first. */
  publicKeys(): readonly string[];
  /** The head of the trail as it is now, signed; undefined while there is no entry. Throws as `AuditSigner.sign`. */
  sign(): Promise<SignedHead | undefined>;
  /** What is kept of an identity whose person is erased, by the installation's key. */
  markIdentity: AuditKey['markIdentity'];
  /** Takes people who were erased out of the trail, in the background. */
  eraseNames(): void;
  /** What this server knows not to work of it; nothing where another server keeps it. */
  faults(): AuditFaults;
  /**
   * Keeps the trail from now on, by this store. Returns how to stop: with `last`, it signs and copies what is left, within about a
   * second. To be called behind everything that writes entries.
   */
  keep(by: Store): (last: boolean) => Promise<void>;
}

/** Why no head is signed, and why the file does not get what it should. */
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
      // Lost, it is found within a minute.
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

/** What is done with the trail in the background. */
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
      // Once, and not at every interval.
      if (message !== failing?.message) log.error('audit.sign.failed', { error: message });
      failing = { since: failing?.since ?? now(), message };
    }
  }

  const { file, group, signMs } = config;
  // At the start too: finds changes to the trail that were made while no service ran.
  const signing = startRounds(signNow, { everyMs: signMs, onFault() {} });
  const copy = file === undefined ? undefined : startCopy(store, { path: file, group }, { log, now });
  const erasures = startErasures({ store, key, log, now });
  const retaining = startRetention({ store, key, signer, file, log }, retention);
  return {
    erasures,
    faults: (): AuditFaults => ({ signing: failing, copy: copy?.fault }),
    /** With `last`, signs and copies what is left. */
    async stop(last: boolean) {
      await Promise.all([signing.stop(), retaining?.stop(), erasures.stop()]);
      if (last) await signNow();
      await copy?.stop(last);
    },
  };
}

/** Retention at the start, when everything else has started, and once a day. */
function startRetention(deps: RetentionDeps, settings: RetentionSettings): Rounds | undefined {
  const { commands, sessions, audit } = settings;
  if (commands === undefined && sessions === undefined && audit === undefined) return undefined;
  const startedAt = performance.now();
  // The run of the next day may come a little early.
  const isNew = () => performance.now() - startedAt < retentionMs - minuteMs;
  return startRounds((stopping) => applyRetention({ ...deps, isNew }, settings, stopping), {
    firstMs: retentionFirstMs,
    everyMs: retentionMs,
    onFault: (error) => deps.log.error('retention.failed', { error: messageOf(error) }),
  });
}
