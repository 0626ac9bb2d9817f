/** `andromeda admin audit accept-break`: lets the audit trail continue after a break, on the host itself. */
import { auditKeysAt } from '../../domain/audit/audit.ts';
import { DomainError } from '../../domain/error.ts';
import { acceptBreak } from '../../store/audit/retention.ts';
import type { Store } from '../../store/engine/index.ts';
import { toTime } from '../../store/engine/time.ts';
import type { Config } from '../config/index.ts';
import { runCommand } from './installation.ts';
import { appendHostEntry, openBeside, openKeys, ownConfig } from './opened.ts';

/** Accepts the break at an entry, in one transaction with the entry that records it. Resolves to the exit status. */
export function acceptAuditBreak(seq: number, options: { config?: string }): Promise<number> {
  return runCommand(async () => {
    const config = ownConfig(options.config);
    await using opened = await openBeside(config);
    const { store } = opened;
    const sign = await requireSigner(config, store);
    await store.write(async (tx) => {
      const entry = await acceptBreak(tx, seq, (previous, one) => sign(previous, one, toTime(tx.now), true));
      await appendHostEntry(tx, {
        operation: 'acceptAuditBreak',
        target: `${seq}`,
        details: `Entry ${seq}, ${entry.hash}, did not follow from the one before; it is taken as it is now`,
      });
    });
    return `The break at entry ${seq} is accepted, signed and in the trail itself; what checks the trail says so from now on. Whether entries
before and behind it fit: andromeda admin audit verify
`;
  });
}

async function requireSigner(config: Config, store: Store) {
  const keys = await openKeys(config, store);
  const set = await keys.find('audit');
  if (set) return auditKeysAt(set, keys.title('audit'), Date.now()).used.signRedaction;
  throw new DomainError(
    'not_found',
    `There is no ${keys.title('audit')} to sign with; the service makes one when it starts.`,
  );
}
