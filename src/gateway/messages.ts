/** Message numbers (RFC 4250, section 4.1) and the messages that the gateway makes itself. */
import { message } from './wire.ts';

export const SSH = {
  DISCONNECT: 1,
  IGNORE: 2,
  UNIMPLEMENTED: 3,
  DEBUG: 4,
  SERVICE_REQUEST: 5,
  SERVICE_ACCEPT: 6,
  EXT_INFO: 7,
  KEXINIT: 20,
  USERAUTH_REQUEST: 50,
  USERAUTH_FAILURE: 51,
  USERAUTH_SUCCESS: 52,
  USERAUTH_BANNER: 53,
  USERAUTH_PK_OK: 60,
  GLOBAL_REQUEST: 80,
  REQUEST_SUCCESS: 81,
  REQUEST_FAILURE: 82,
  CHANNEL_OPEN: 90,
  CHANNEL_OPEN_CONFIRMATION: 91,
  CHANNEL_OPEN_FAILURE: 92,
  CHANNEL_WINDOW_ADJUST: 93,
  CHANNEL_DATA: 94,
  CHANNEL_EXTENDED_DATA: 95,
  CHANNEL_EOF: 96,
  CHANNEL_CLOSE: 97,
  CHANNEL_REQUEST: 98,
  CHANNEL_SUCCESS: 99,
  CHANNEL_FAILURE: 100,
  PING: 192,
  PONG: 193,
} as const;

/** Reasons of SSH_MSG_DISCONNECT (RFC 4253, section 11.1). */
export const DISCONNECT = {
  PROTOCOL_ERROR: 2,
  KEY_EXCHANGE_FAILED: 3,
  SERVICE_NOT_AVAILABLE: 7,
  HOST_KEY_NOT_VERIFIABLE: 9,
  CONNECTION_LOST: 10,
  BY_APPLICATION: 11,
  TOO_MANY_CONNECTIONS: 12,
  NO_MORE_AUTH_METHODS: 14,
} as const;

/** Reasons of SSH_MSG_CHANNEL_OPEN_FAILURE (RFC 4254, section 5.1). */
export const OPEN_FAILURE = { PROHIBITED: 1, RESOURCE_SHORTAGE: 4 } as const;

export const disconnectMessage = (reason: number, text: string) =>
  message(SSH.DISCONNECT, { uint32: reason }, text, '');

export const openFailure = (channel: number, reason: number, text: string) =>
  message(SSH.CHANNEL_OPEN_FAILURE, { uint32: channel }, { uint32: reason }, text, '');

export const channelFailure = (channel: number) => message(SSH.CHANNEL_FAILURE, { uint32: channel });

/** Data for the standard error of a session (RFC 4254, section 5.2). */
export const standardError = (channel: number, text: string) =>
  message(SSH.CHANNEL_EXTENDED_DATA, { uint32: channel }, { uint32: 1 }, text);

/** A remark that clients show when they are verbose (RFC 4253, section 11.3). */
export const debugMessage = (text: string) => message(SSH.DEBUG, true, text, '');

export const requestFailure = () => message(SSH.REQUEST_FAILURE);

export const keepalive = () => message(SSH.GLOBAL_REQUEST, 'keepalive@openssh.com', true);

export const extInfo = (extensions: Record<string, string>) =>
  message(SSH.EXT_INFO, { uint32: Object.keys(extensions).length }, ...Object.entries(extensions).flat());

/** Only `publickey` can continue (RFC 4252, section 5.1). */
export const authFailure = () => message(SSH.USERAUTH_FAILURE, 'publickey', false);

export const authSuccess = () => message(SSH.USERAUTH_SUCCESS);

export const authBanner = (text: string) => message(SSH.USERAUTH_BANNER, `${text}\r\n`, '');
