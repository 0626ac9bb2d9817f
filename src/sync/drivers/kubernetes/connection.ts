/** The connection of a driver to its API server: opened when it is first needed, and again after a failure. */
import type { KubernetesSettings } from '../../../domain/kubernetes-settings.ts';
import { type KubernetesClient, openClient } from './client.ts';

export class Connection {
  readonly #settings: KubernetesSettings;
  readonly #confirm: (() => Promise<void>) | undefined;
  #client: Promise<KubernetesClient> | undefined;

  constructor(settings: KubernetesSettings, confirm?: () => Promise<void>) {
    this.#settings = settings;
    this.#confirm = confirm;
  }

  /** Settings that cannot be used are tried again, as the files that they name may come. Throws what is wrong with them. */
  open(): Promise<KubernetesClient> {
    this.#client ??= openClient(this.#settings, this.#confirm).catch((error) => {
      this.#client = undefined;
      throw error;
    });
    return this.#client;
  }

  /** Closes it; the next `open` reads the files again, which may have changed. */
  async close(): Promise<void> {
    const before = this.#client;
    this.#client = undefined;
    await (await before?.catch(() => undefined))?.close();
  }
}
