/** A device that waits for a person's answer (RFC 8628): its request, and the answer, which counts once. */
import type { default as Provider } from 'oidc-provider';
import type { Reader, Store } from '../../../../store/engine/index.ts';
import type { PasswordAccount } from '../../../../store/people/identities.ts';
import {
  findIssuerRecordByUserCode,
  type IssuerRecord,
  updateIssuerRecordByUserCode,
} from '../../../../store/people/issuer-records.ts';
import { newGrantId } from '../accounts.ts';
import { type Browser, methodsOf } from '../browser.ts';
import { apiResource, grantedScopes, type IssuerClient } from '../clients.ts';

export interface WaitingDevice {
  client: IssuerClient;
  /** Normalized: the eight letters. */
  userCode: string;
  address: string;
  program: string;
  /** Seconds since 1970. */
  askedAt: number;
  scope: string;
  /** The API that its tokens are for (RFC 8707); the library has refused unknown ones. */
  resource: string;
}

export type DeviceState =
  | { state: 'waiting'; device: WaitingDevice }
  | { state: 'unknown' }
  | { state: 'expired' }
  | { state: 'answered' };

/** The letters of a typed user code: case, dashes and blanks do not matter (RFC 8628, section 6.1). */
export function normalizeUserCode(typed: string): string {
  return typed
    .toUpperCase()
    .replace(/[^A-Z0-9]/g, '')
    .slice(0, 32);
}

export function displayUserCode(userCode: string): string {
  return userCode.length === 8 ? `${userCode.slice(0, 4)}-${userCode.slice(4)}` : userCode;
}

/** The state of the device that shows this code. `now` is in seconds. */
export async function findDevice(
  reader: Reader,
  clients: readonly IssuerClient[],
  userCode: string,
  now: number,
): Promise<DeviceState> {
  const record = await findIssuerRecordByUserCode(reader, 'DeviceCode', userCode, now);
  if (!record) return { state: 'unknown' };
  const { payload } = record;
  const client = clients.find(({ id }) => id === payload.clientId);
  if (!client) return { state: 'unknown' };
  if (isAnswered(record)) return { state: 'answered' };
  if (isExpired(record, now)) return { state: 'expired' };
  const info = object(payload.deviceInfo);
  const device = {
    client,
    userCode,
    address: text(info.ip) || 'unknown',
    program: text(info.ua) || 'unknown',
    askedAt: Number(payload.iat),
    scope: text(object(payload.params).scope),
    resource: text(object(payload.params).resource) || apiResource,
  };
  return { state: 'waiting', device };
}

/** Grants the device its request, as this person. False if the code was answered or expired meanwhile. */
export async function approveDevice(
  { store, provider }: { store: Store; provider: Provider },
  device: WaitingDevice,
  person: { account: PasswordAccount; browser: Browser },
  now: number,
): Promise<boolean> {
  const { client, resource } = device;
  const scopes = grantedScopes(client, device.scope);
  const { userId } = person.account;
  const grant = new provider.Grant({ accountId: userId, clientId: client.id });
  grant.jti = newGrantId(person.account);
  grant.addOIDCScope(scopes.join(' '));
  if (client.callsApis) grant.addResourceScope(resource, scopes.join(' '));
  const grantId = await grant.save();
  const answered = await answer(store, device.userCode, now, {
    accountId: userId,
    authTime: person.browser.authTime ?? 0,
    amr: methodsOf(person.browser),
    grantId,
    // Contains all requested scopes, so that a refresh that requests them again does not fail; the grant decides.
    scope: [...new Set([...device.scope.split(' ').filter(Boolean), ...scopes])].join(' '),
    ...(client.callsApis ? { resource } : {}),
  });
  if (!answered) await grant.destroy();
  return answered;
}

/** Refuses the device, which gets `access_denied`. False if the code was answered or expired meanwhile. */
export function denyDevice(store: Store, userCode: string, now: number): Promise<boolean> {
  const denied = { error: 'access_denied', errorDescription: 'the sign-in was denied in the browser' };
  return answer(store, userCode, now, denied);
}

function answer(
  store: Store,
  userCode: string,
  now: number,
  fields: Record<string, unknown>,
): Promise<boolean> {
  return store.write((tx) =>
    updateIssuerRecordByUserCode(tx, 'DeviceCode', userCode, now, (record) =>
      isAnswered(record) || isExpired(record, now) ? undefined : { ...record.payload, ...fields },
    ),
  );
}

function isAnswered({ payload, consumedAt }: IssuerRecord): boolean {
  return consumedAt !== undefined || payload.accountId !== undefined || payload.error !== undefined;
}

function isExpired({ payload }: IssuerRecord, now: number): boolean {
  return Number(payload.exp) <= now;
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
