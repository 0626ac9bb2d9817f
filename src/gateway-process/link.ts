/**
 * A gateway process's connection to the service: made again whenever it breaks. It is up from the service's welcome on.
 * Questions that were not answered are asked again then.
 */
import { connect } from 'node:net';
import { type Lines, openLines } from './lines.ts';
import type { FromProcess, Hello, Settings, ToProcess } from './messages.ts';
import { readToProcess } from './messages.ts';

/** Short: the service that starts waits for its processes. */
const reconnectMs = 100;
/** More unsent than this, and the service does not read: log lines wait then. */
const slowBytes = 1024 * 1024;

export interface LinkOptions {
  /** The service's socket. */
  path: string;
  hello(): Hello;
  onWelcome(settings: Settings): void;
  onMessage(message: ToProcess): void;
  onFault(error: unknown): void;
}

type Question = Extract<FromProcess, { type: 'authorize' }>;

interface Asked {
  question: Question;
  resolve(answer: Extract<ToProcess, { type: 'decision' }>['decision']): void;
  reject(error: Error): void;
}

export class Link {
  readonly #options: LinkOptions;
  readonly #asked = new Map<number, Asked>();
  #lines: Lines<FromProcess> | undefined;
  #up = false;
  #ended = false;
  #last = 0;
  /** Since when the service is away; undefined while it is there. */
  awaySince: number | undefined = performance.now();

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  get isUp(): boolean {
    return this.#up;
  }

  /** Whether the service reads what it is sent. */
  get isSlow(): boolean {
    return (this.#lines?.unsent() ?? 0) > slowBytes;
  }

  /** Connects, again and again until `end`. */
  start(): void {
    if (this.#ended) return;
    const socket = connect(this.#options.path);
    const lines = openLines<ToProcess, FromProcess>(socket, {
      read: readToProcess,
      onMessage: (message) => this.#onMessage(message),
      onClose: (fault) => {
        this.#up = false;
        this.#lines = undefined;
        this.awaySince ??= performance.now();
        if (fault !== undefined) this.#options.onFault(new Error(`the service's connection: ${fault}`));
        setTimeout(() => this.start(), reconnectMs);
      },
      onFault: this.#options.onFault,
    });
    this.#lines = lines;
    socket.once('connect', () => lines.send(this.#options.hello()));
  }

  /** False while the service is away. */
  send(message: FromProcess): boolean {
    return this.#up && (this.#lines?.send(message) ?? false);
  }

  /** Asks the service, if need be when it is back. Fails after `timeoutMs`. */
  ask(question: Omit<Question, 'id'>, timeoutMs: number) {
    this.#last += 1;
    const id = this.#last;
    return new Promise<Parameters<Asked['resolve']>[0]>((resolve, reject) => {
      const late = setTimeout(() => {
        settle();
        reject(new Error(`the service did not answer within ${timeoutMs} ms`));
      }, timeoutMs);
      const settle = () => {
        clearTimeout(late);
        this.#asked.delete(id);
      };
      const asked: Asked = {
        question: { ...question, id },
        resolve: (answer) => {
          settle();
          resolve(answer);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      };
      this.#asked.set(id, asked);
      this.send(asked.question);
    });
  }

  end(): void {
    this.#ended = true;
    this.#lines?.close();
  }

  #onMessage(message: ToProcess): void {
    if (message.type === 'welcome') {
      this.#up = true;
      this.awaySince = undefined;
      this.#options.onWelcome(message.settings);
      for (const { question } of this.#asked.values()) this.send(question);
    } else if (message.type === 'decision') this.#asked.get(message.id)?.resolve(message.decision);
    else if (message.type === 'undecided') this.#asked.get(message.id)?.reject(new Error(message.message));
    else this.#options.onMessage(message);
  }
}
