/** Limits on downloads of large files, so that clients that stop reading do not block downloads for everyone else. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '../../domain/error.ts';
import { createCounter } from '../../lib/limits.ts';
import { noteRefusal } from '../../lib/response.ts';
import { clientAddress, sourceNetwork, type TrustedProxies } from '../../lib/source-address.ts';

export interface TransferLimits {
  /** Downloads of one address (IPv6: of 56 bits); an eighth of it while more than half of all are under way. */
  perSource: number;
  inAll: number;
  /** How long a reader may take nothing of what is sent. */
  stallMs: number;
}

export const usualTransfers: TransferLimits = { perSource: 16, inAll: 128, stallMs: 20_000 };

/** Files up to here are read in a moment, and the connections of an address are limited anyway: they are not counted. */
const smallBytes = 2 ** 20;
const retryAfterSeconds = 30;

export interface Transfers {
  /** Takes a slot until the response is closed. Throws `service_unavailable` where there is none. */
  begin(request: IncomingMessage, response: ServerResponse, bytes: number): void;
}

export function createTransfers(proxies: TrustedProxies, limits: TransferLimits): Transfers {
  const sources = createCounter();
  let all = 0;
  return {
    begin(request, response, bytes) {
      if (bytes > smallBytes) {
        const most = all >= limits.inAll / 2 ? Math.ceil(limits.perSource / 8) : limits.perSource;
        const network = sourceNetwork(clientAddress(proxies, request));
        const leave = all < limits.inAll ? sources.enter(network, most) : undefined;
        if (!leave) {
          response.setHeader('Retry-After', retryAfterSeconds);
          noteRefusal(response, 'too many downloads');
          throw new DomainError(
            'service_unavailable',
            'Too many downloads are under way, of your address or of all; try again shortly.',
          );
        }
        all++;
        response.once('close', () => {
          all--;
          leave();
        });
      }
      closeWhenStalled(response, limits.stallMs);
    },
  };
}

/** `drain` says that the reader took something. What it sends itself does not count, unlike with the timeout of a socket. */
function closeWhenStalled(response: ServerResponse, stallMs: number): void {
  const timer = setTimeout(() => response.destroy(), stallMs).unref();
  response.on('drain', () => timer.refresh());
  response.once('close', () => clearTimeout(timer));
}
