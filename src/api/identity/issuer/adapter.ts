/** oidc-provider's storage contract (its `adapter` option) on the store. */
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

/** The library's clock, which nothing can set: what it wrote an expiry by is what it is read by. */
export function librarySeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** How long a device code is still known after it expired, so that the device gets `expired_token` (RFC 8628). */
const deviceCodeGrace = 600;

export interface AdapterOptions {
  store: Store;
  rotation: Rotation;
  /** The error of a record that two requests tried to use at once: only the database knows which was the first. */
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
 * What is different about refresh tokens: one is used up when its successor is saved, in the same transaction, and
 * answers again for a short while (`createRotation`).
 */
function rotatingMethods(
  { store, rotation, alreadyUsed }: AdapterOptions,
  adapter: Adapter,
): Pick<Adapter, 'upsert' | 'find' | 'consume'> {
  const model = 'RefreshToken';
  // By the one clock of all servers: a repeat may reach another than the first did.
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
    // The library asks for it just before it saves the successor.
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

/** As long as a client may need to get through again: PostgreSQL's standby may take a minute to be promoted. */
export const repeatSeconds = 120;

export type Rotation = ReturnType<typeof createRotation>;

/**
 * Rotation of refresh tokens: each is good for one use, and its use makes a successor (RFC 9700, 4.14.2). The answer with
 * the successor can be lost, with the connection or with a killed process, and the client then has nothing but the used
 * token. So a successor is derived from its token with the issuer's key: the same token gives the same successor, and
 * nothing that could be stolen has to be stored for that. A used token answers again for `repeatSeconds`, and only while its
 * successor has not been used. After that its use ends the session: the token may be stolen. `key` is secret: with it, new
 * tokens can be computed from old ones.
 */
export function createRotation(key: string, request: () => KoaContextWithOIDC | undefined) {
  return {
    successorOf: (refreshToken: string) => sign(key, 'refresh token', refreshToken),
    /** The refresh token that the request under way uses; undefined when it uses none. */
    current: () => request()?.oidc.entities.RotatedRefreshToken?.jti,
  };
}

interface MakesIds {
  generateTokenId(): string;
}

/** Lets the library name a successor as `rotation` does; the first token of a session stays random. */
export function nameSuccessors({ RefreshToken }: Provider, { current, successorOf }: Rotation): void {
  const tokens: MakesIds = RefreshToken.prototype as unknown as MakesIds;
  const { generateTokenId } = tokens;
  tokens.generateTokenId = function () {
    const used = current();
    return used === undefined ? generateTokenId.call(this) : successorOf(used);
  };
}
