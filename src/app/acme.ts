/** A part of the composition root: certificates that the service obtains by itself. */
import { readState } from '../acme/files.ts';
import type { Acme } from '../acme/index.ts';
import type { Config } from '../config/index.ts';
import { listHttpListeners } from '../config/listeners.ts';
import type { Logger } from '../lib/log.ts';

/** What went wrong when a certificate was tried for last; undefined where that went well. */
export function lastFailureOfAcme(dataDir: string): { failure: string; notBefore: string } | undefined {
  const { failure, notBefore } = readState(dataDir);
  return failure === undefined || notBefore === undefined ? undefined : { failure, notBefore };
}

/** Undefined where the configuration has none. Nothing is asked for before its `begin`. */
export async function openAcme(
  { acme, dataDir, ...config }: Config,
  { log, now }: { log: Logger; now(): number },
): Promise<Acme | undefined> {
  if (!acme) return undefined;
  const { createAcme } = await import('../acme/index.ts');
  const urls = listHttpListeners(config).flatMap(([, { tls, url }]) => (tls && 'acme' in tls ? [url] : []));
  return createAcme({ ...acme, dataDir, origins: urls.map((url) => new URL(url).origin), log, now });
}
