/**
 * The messages of `serve` on stderr (plain text in the demonstration, else only lines of the log), and its exit
 * status after a failed start, so that systemd knows whether to try again (`service-unit.ts`).
 */
import { DomainError } from '../../domain/error.ts';
import { messageOf } from '../../lib/error-message.ts';
import type { Logger } from '../../lib/log.ts';
import { faultBehind } from '../../store/engine/engine.ts';
import { withConfig } from './installation.ts';

export interface Messages {
  stopping(signal: string): void;
  leaving(): void;
  stopped(message?: string): void;
  reloading(): void;
  notReloaded(why: string): void;
  failed(error: unknown, status: number, file?: string): void;
}

export const plainMessages: Messages = {
  stopping: (signal) => void process.stderr.write(`\nStopping (${signal})…\n`),
  leaving: () => void process.stderr.write('Some parts did not stop in time; left them.\n'),
  stopped: (message = 'Stopped.') => void process.stderr.write(`${message}\n`),
  reloading: () => void process.stderr.write('Taking up the settings…\n'),
  notReloaded: (why) => void process.stderr.write(`andromeda: ${why}\n`),
  failed: (error) => void process.stderr.write(`andromeda: ${messageOf(error)}\n`),
};

export function loggedMessages(log: Logger): Messages {
  return {
    stopping: (signal) => log.info('serve.stopping', { signal, message: `Stopping (${signal})…` }),
    leaving: () => log.error('serve.left', { message: 'Some parts did not stop in time; left them.' }),
    stopped: (message = 'Stopped.') => log.info('serve.stopped', { message }),
    reloading: () => log.info('serve.reloading', { message: 'Taking up the settings that are on disk…' }),
    notReloaded: (why) => log.error('serve.reload.refused', { message: `Not reloaded: ${why}` }),
    failed(error, status, file) {
      const fault = error instanceof DomainError ? {} : { error };
      log.error('serve.failed', { message: withConfig(messageOf(error), file), status, ...fault });
    },
  };
}

/** Logs what Node would otherwise write to stderr by itself: its warnings, and uncaught exceptions. */
export function logNodeMessages(log: Logger): void {
  for (const event of ['warning', 'uncaughtException']) process.removeAllListeners(event);
  process.on('warning', ({ name, message }) => log.warn('process.warning', { name, message }));
  process.on('uncaughtException', (error) => {
    log.error('process.failed', { error });
    process.exit(1);
  });
}

/** Exit statuses of faults that a restart does not fix, by the names of sysexits.h. */
export const exitStatus = {
  /** An address is in use, or this machine or account cannot listen on it (EX_UNAVAILABLE). */
  address: 69,
  /** The configuration or the data directory is unusable as it is (EX_CONFIG). */
  configuration: 78,
} as const;

/** The exit status after a failed start: 1 for a fault that may be over soon, such as a full disk. */
export function statusOf(error: unknown): number {
  if (!(error instanceof DomainError)) return 1;
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  if (['EADDRINUSE', 'EADDRNOTAVAIL', 'EACCES'].includes(code ?? '') && error.code === 'service_unavailable')
    return exitStatus.address;
  if (faultBehind(error) === 'damaged') return exitStatus.configuration;
  return error.code === 'service_unavailable' ? 1 : exitStatus.configuration;
}
