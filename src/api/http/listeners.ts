/** The addresses that are listened on. They outlive what is served there, so that a reload refuses no connection. */
import { DomainError } from '../../domain/error.ts';
import { type Endpoint, Listener } from './listen.ts';

export class Listeners {
  readonly #open = new Map<string, Listener>();

  /** Listens where it does not yet; what is asked there waits. Throws in words, and then listens where it did before. */
  async add(wanted: readonly Endpoint[]): Promise<void> {
    try {
      for (const endpoint of wanted) {
        if (this.has(endpoint)) continue;
        await this.#listen(endpoint).catch((error: unknown) => {
          // What takes the place of one of ours, as 0.0.0.0 that of 127.0.0.1, can only follow it.
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

  /** The listener of an address, to serve something there. Throws `service_unavailable` with a sentence where it cannot be had. */
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

  /** All serve nothing, until something is served there again. What is under way has `graceMs`. */
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
