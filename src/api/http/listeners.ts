/** The service's listening addresses. They outlive their handlers, so that a reload refuses no connection. */
import { DomainError } from '../../domain/error.ts';
import { type Endpoint, Listener } from './listen.ts';

export class Listeners {
  readonly #open = new Map<string, Listener>();

  /** Opens missing addresses, whose requests wait for a handler. On an error, throws and closes those without a handler. */
  async add(wanted: readonly Endpoint[]): Promise<void> {
    try {
      for (const endpoint of wanted) {
        if (this.has(endpoint)) continue;
        await this.#listen(endpoint).catch((error: unknown) => {
          // An address that overlaps with one of ours, as 0.0.0.0 does with 127.0.0.1, can be opened only after that is closed.
          if (!isInUse(error) || ![...this.#open.values()].some(({ port }) => port === endpoint.port))
            throw error;
        });
      }
    } catch (error) {
      await this.closeUnused();
      throw error;
    }
  }

  has({ host, port }: Pick<Endpoint, 'host' | 'port'>): boolean {
    return this.#open.has(`${host}:${port}`);
  }

  /** The listener of an address that has no handler yet. Throws `service_unavailable` with a sentence if it is not available. */
  async at(endpoint: Endpoint): Promise<Listener> {
    const found = this.#open.get(`${endpoint.host}:${endpoint.port}`);
    if (found && !found.isServing) {
      if (found.isTls === endpoint.isTls) return found;
      void this.#close(found);
    }
    return this.#listen(endpoint).catch((error: unknown) => {
      const rivals = [...this.#open.values()].filter((one) => one.port === endpoint.port && !one.isServing);
      if (!isInUse(error) || rivals.length === 0) throw error;
      for (const rival of rivals) void this.#close(rival);
      return this.#listen(endpoint);
    });
  }

  /** Stops serving on all addresses until handlers are set again. Current requests have `graceMs` to finish. */
  async pause(graceMs: number): Promise<void> {
    await Promise.all([...this.#open.values()].map((one) => one.pause(graceMs)));
  }

  async stop(graceMs: number, lingerMs = 0): Promise<void> {
    await Promise.all([...this.#open.values()].map((one) => this.#close(one, graceMs, lingerMs)));
  }

  async closeUnused(): Promise<void> {
    await Promise.all([...this.#open.values()].map((one) => one.isServing || this.#close(one)));
  }

  async #listen(endpoint: Endpoint): Promise<Listener> {
    const listener = new Listener(endpoint);
    await listener.open();
    this.#open.set(`${endpoint.host}:${listener.port}`, listener);
    return listener;
  }

  async #close(listener: Listener, graceMs = 0, lingerMs = 0): Promise<void> {
    for (const [address, one] of this.#open) if (one === listener) this.#open.delete(address);
    await listener.stop(graceMs, lingerMs);
  }
}

function isInUse(error: unknown): boolean {
  return error instanceof DomainError && (error.cause as NodeJS.ErrnoException).code === 'EADDRINUSE';
}
