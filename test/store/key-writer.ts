/** Registers and revokes keys in a loop until it is killed; prints each change once it is acknowledged. */
import { writeSync } from 'node:fs';
import { registerSshKey, revokeSshKey } from '../../src/api/business/ssh-keys.ts';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

const [dataDir = '', userId = '', run = ''] = process.argv.slice(2);
const store = await openStore(dataDir);
const caller = { userId, sourceAddress: '' };

async function work(lane: number): Promise<void> {
  for (let i = 0; ; i++) {
    const command = { idempotencyKey: `${run}-${lane}-${i}`, auditReason: 'r' };
    const common = { caller, query: {}, now: Date.now() };
    const key = parseSshPublicKey(newPublicKey()).material;
    const made = await registerSshKey(
      { store } as never,
      { ...common, body: { public_key: key }, command } as never,
    );
    const { id } = made.result.ssh_key;
    writeSync(1, `registered ${id}\n`);
    if (i % 2 === 0) continue;
    const again = { ...command, idempotencyKey: `${command.idempotencyKey}-revoke` };
    await revokeSshKey(
      { store } as never,
      {
        ...common,
        path: { keyID: id },
        body: undefined,
        command: again,
      } as never,
    );
    writeSync(1, `revoked ${id}\n`);
  }
}

await Promise.all([0, 1, 2].map(work));
