/** oidc-provider's storage contract (its `adapter` option), implemented on the store. */
import type { Adapter, AdapterPayload, KoaContextWithOIDC, default as Provider } from 'oidc-provider';
import { databaseTime } from '../../../store/engine/engine.ts';
import type { Store } from '../../../store/engine/index.ts';
import {
  consumeIssuerRecord,
  deleteIssuerRecord,
  deleteIssuerRecordsOfGrant,
  findIssuerRecord,
  findIssuerRecordByUid,
  findIssuerRecordByUserCode,
  type IssuerRecord,
  isRepeatable,
  replaceIssuerRecord,
  saveIssuerRecord,
} from '../../../store/people/issuer-records.ts';
import { sign } from './cookie.ts';

/** The library's clock, which cannot be replaced: expiry times are written and read by it. */
export function librarySeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** Seconds for which an expired device code is still known, so that the device gets `expired_token` (RFC 8628). */
const deviceCodeGrace = 600;

export interface AdapterOptions {
  store: Store;
  rotation: Rotation;
  /** The error for a record that two concurrent requests tried to use: the database decides which was first. */
  alreadyUsed(): Error;
}

export function createAdapter(options: AdapterOptions, model: string): Adapter {
  const { store, alreadyUsed } = options;
  const adapter: Adapter = {
    async upsert(id, payload, expiresIn) {
      const expiresAt = expiryOf(model, expiresIn);
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
  return model === 'RefreshToken' ? { ...adapter, ...rotatingMethods(options, adapter) } : adapter;
}

/**
 * Overrides for refresh tokens: saving the successor consumes the token, in the same transaction, and a consumed
 * token still works for a short while (`createRotation`).
 */
function rotatingMethods(
  { store, rotation, alreadyUsed }: AdapterOptions,
  adapter: Adapter,
): Pick<Adapter, 'upsert' | 'find' | 'consume'> {
  const model = 'RefreshToken';
  // The database's clock, since a repeated request may reach another server than the first.
  const times = async () => ({
    now: Math.floor((await databaseTime(store.read)) / 1000),
    graceSeconds: repeatSeconds,
  });
  return {
    async upsert(id, payload, expiresIn) {
      const used = rotation.current();
      if (used === undefined) return adapter.upsert(id, payload, expiresIn);
      const successor = { id, payload: { ...payload }, expiresAt: expiryOf(model, expiresIn) };
      const when = await times();
      if (!(await store.write((tx) => replaceIssuerRecord(tx, model, used, successor, when))))
        throw alreadyUsed();
    },
    async find(id) {
      const record = await findIssuerRecord(store.read, model, id, librarySeconds());
      if (record?.consumedAt === undefined) return record?.payload;
      const used = { consumedAt: record.consumedAt, successorId: rotation.successorOf(id) };
      return (await isRepeatable(store.read, model, used, await times()))
        ? record.payload
        : forLibrary(record);
    },
    // The library calls this just before it saves the successor, which consumes the token.
    consume: async () => {},
  };
}

function expiryOf(model: string, expiresIn: number | undefined): number | undefined {
  const grace = model === 'DeviceCode' ? deviceCodeGrace : 0;
  return expiresIn === undefined ? undefined : librarySeconds() + expiresIn + grace;
}

function forLibrary(record: IssuerRecord | undefined): AdapterPayload | undefined {
  if (!record) return undefined;
  return record.consumedAt === undefined
    ? record.payload
    : { ...record.payload, consumed: record.consumedAt };
}

/** Long enough for a client to reconnect: promoting PostgreSQL's standby may take a minute. */
export const repeatSeconds = 120;

export type Rotation = ReturnType<typeof createRotation>;

/**
 * Rotation of refresh tokens: each is used once, and its use makes a successor (RFC 9700, 4.14.2). A response with
 * the successor can get lost with the connection or the process, and the client then has only the used token. So a
 * successor is derived from its token with the issuer's key: the same token yields the same successor, and no
 * stealable secret has to be stored. A used token works again for `repeatSeconds`, but only while its successor is
 * unused. After that, its use ends the session: the token may be stolen. `key` is secret: it allows computing new
 * tokens from old ones.
 */
export function createRotation(key: string, request: () => KoaContextWithOIDC | undefined) {
  return {
    successorOf: (refreshToken: string) => sign(key, 'refresh token', refreshToken),
    /** The refresh token that the current request uses; undefined for none. */
    current: () => request()?.oidc.entities.RotatedRefreshToken?.jti,
  };
}

interface MakesIds {
  generateTokenId(): string;
}

/** Makes the library use `rotation`'s ID for a successor; the first token of a session stays random. */
export function nameSuccessors({ RefreshToken }: Provider, { current, successorOf }: Rotation): void {
  const tokens: MakesIds = RefreshToken.prototype as unknown as MakesIds;
  const { generateTokenId } = tokens;
  tokens.generateTokenId = function () {
    const used = current();
    return used === undefined ? generateTokenId.call(this) : successorOf(used);
  };
}
