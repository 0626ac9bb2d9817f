/** The numbers of the SSH protocol: messages, and reasons of a disconnect and of a refused channel. */

/** Messages (RFC 4250, section 4.1). PING and PONG are OpenSSH's own (PROTOCOL, section 1.9). */
export const SSH = {
  DISCONNECT: 1,
  IGNORE: 2,
  UNIMPLEMENTED: 3,
  DEBUG: 4,
  SERVICE_REQUEST: 5,
  SERVICE_ACCEPT: 6,
  EXT_INFO: 7,
  KEXINIT: 20,
  KEX_ECDH_INIT: 30,
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
  BY_APPLICATION: 11,
  TOO_MANY_CONNECTIONS: 12,
  NO_MORE_AUTH_METHODS: 14,
} as const;

/** Reasons of SSH_MSG_CHANNEL_OPEN_FAILURE (RFC 4254, section 5.1). */
export const OPEN_FAILURE = {
  PROHIBITED: 1,
  CONNECT_FAILED: 2,
  UNKNOWN_TYPE: 3,
  RESOURCE_SHORTAGE: 4,
} as const;

/** Whether a message belongs to a key exchange (RFC 4253, section 12: numbers 20 to 49). */
export function isOfExchange(type = 0): boolean {
  return type >= SSH.KEXINIT && type < SSH.USERAUTH_REQUEST;
}
