/** How `serve` ends where it could not start, so that systemd knows whether to try again (`service-unit.ts`). */
import type { DomainError } from '../../domain/error.ts';

/** What a restart does not mend, by the names of sysexits.h. */
export const exitStatus = {
  /** An address is taken, or not this machine's or account's to listen on (EX_UNAVAILABLE). */
  address: 69,
  /** The configuration or the data directory cannot be used as it is (EX_CONFIG). */
  configuration: 78,
} as const;

/** The status for a service that could not start: 1 for what may be over soon, such as a full disk. */
export function statusOf(error: DomainError): number {
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  if (['EADDRINUSE', 'EADDRNOTAVAIL', 'EACCES'].includes(code ?? '') && error.code === 'service_unavailable')
    return exitStatus.address;
  return error.code === 'service_unavailable' ? 1 : exitStatus.configuration;
}
