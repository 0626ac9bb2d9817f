/** Limits on downloads of large files, so that clients that stop reading do not block downloads for everyone else. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '../../domain/error.ts';
import { createCounter } from '../../lib/limits.ts';
import { noteRefusal } from '../../lib/response.ts';
import { clientAddress, sourceNetwork, type TrustedProxies } from '../../lib/source-address.ts';

export interface TransferLimits {
  /** Limit for one address (IPv6: a network of 56 bits); an eighth of it while more than half of all slots are taken. */
  perSource: number;
  inAll: number;
  /** Timeout of a reader that takes no bytes. */
  stallMs: number;
}

export const usualTransfers: TransferLimits = { perSource: 16, inAll: 128, stallMs: 20_000 };

/** Smaller files are read in a moment, and connections of an address are limited anyway: they take no slot. */
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

/** Resets the timeout on `drain`: the reader took bytes. Bytes that the client sends do not count, unlike with a socket's timeout. */
function closeWhenStalled(response: ServerResponse, stallMs: number): void {
  const timer = setTimeout(() => response.destroy(), stallMs).unref();
  response.on('drain', () => timer.refresh());
  response.once('close', () => clearTimeout(timer));
}
