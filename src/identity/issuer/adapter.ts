/** oidc-provider's storage contract (its `adapter` option) on the store. */
import type { Adapter, AdapterPayload } from 'oidc-provider';
import type { Store } from '../../store/index.ts';
import {
  consumeIssuerRecord,
  deleteIssuerRecord,
  deleteIssuerRecordsOfGrant,
  findIssuerRecord,
  findIssuerRecordByUid,
  findIssuerRecordByUserCode,
  type IssuerRecord,
  saveIssuerRecord,
} from '../../store/issuer-records.ts';

/** The library's clock, which nothing can set: what it wrote an expiry by is what it is read by. */
export function librarySeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** How long a device code is still known after it expired, so that the device hears `expired_token` (RFC 8628). */
export const deviceCodeGrace = 600;

/**
 * The adapter of one model. `alreadyUsed` makes the error of a record that two requests tried to use at once: the
 * library looks first and marks later, and only the database can tell which of the two was first.
 */
export function createAdapter(
  { store, alreadyUsed }: { store: Store; alreadyUsed: () => Error },
  model: string,
): Adapter {
  return {
    async upsert(id, payload, expiresIn) {
      const grace = model === 'DeviceCode' ? deviceCodeGrace : 0;
      const expiresAt = expiresIn === undefined ? undefined : librarySeconds() + expiresIn + grace;
      await store.write((tx) => saveIssuerRecord(tx, model, id, { ...payload }, expiresAt));
    },
    find: async (id) => forLibrary(await findIssuerRecord(store.read, model, id, librarySeconds())),
    findByUserCode: async (userCode) =>
      forLibrary(await findIssuerRecordByUserCode(store.read, model, userCode, librarySeconds())),
    findByUid: async (uid) =>
      forLibrary(await findIssuerRecordByUid(store.read, model, uid, librarySeconds())),
    async consume(id) {
      if (!(await store.write((tx) => consumeIssuerRecord(tx, model, id, librarySeconds()))))
        throw alreadyUsed();
    },
    async destroy(id) {
      await store.write((tx) => deleteIssuerRecord(tx, model, id));
    },
    async revokeByGrantId(grantId) {
      await store.write((tx) => deleteIssuerRecordsOfGrant(tx, model, grantId));
    },
  };
}

function forLibrary(record: IssuerRecord | undefined): AdapterPayload | undefined {
  if (!record) return undefined;
  return record.consumedAt === undefined
    ? record.payload
    : { ...record.payload, consumed: record.consumedAt };
}
