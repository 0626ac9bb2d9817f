/** The messages that the gateway composes itself. */
import { message, SSH } from '../../lib/ssh/wire.ts';

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
