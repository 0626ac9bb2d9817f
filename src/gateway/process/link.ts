/**
 * A gateway process's connection to the service, which reconnects. It is up from the service's welcome on. Unanswered
 * questions are then asked again, once: a question that breaks the connection must not do so for ever.
 */
import { connect } from 'node:net';
import { Questions } from '../../lib/questions.ts';
import type { Decision } from '../ssh/decision.ts';
import { type Lines, openLines } from './lines.ts';
import type { FromProcess, Hello, Malformed, Settings, ToProcess } from './messages.ts';
import { readToProcess } from './messages.ts';

/** Delay before a reconnect. Short: a service that starts waits for its processes. */
const reconnectMs = 100;
/** With more unsent bytes than this, the service does not read, and log lines wait. */
const slowBytes = 1024 * 1024;

export interface LinkOptions {
  path: string;
  hello(): Hello;
  onWelcome(settings: Settings): void;
  onMessage(message: ToProcess): void;
  onFault(error: unknown): void;
}

type Question = Extract<FromProcess, { type: 'authorize' }>;

export class Link {
  readonly #options: LinkOptions;
  readonly #questions = new Questions<number, Decision>();
  #lines: Lines<FromProcess> | undefined;
  #up = false;
  #ended = false;
  #last = 0;
  /** Time since which the service is away; undefined while it is connected. */
  awaySince: number | undefined = performance.now();
  /** Time since which a service listens, whether or not it answers; undefined while none does. */
  runningSince: number | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  get isUp(): boolean {
    return this.#up;
  }

  get isSlow(): boolean {
    return (this.#lines?.unsent() ?? 0) > slowBytes;
  }

  start(): void {
    if (this.#ended) return;
    const socket = connect(this.#options.path);
    const lines = openLines<ToProcess | Malformed, FromProcess>(socket, {
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
    socket.once('connect', () => {
      this.runningSince ??= performance.now();
      lines.send(this.#options.hello());
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED' || code === 'ENOENT') this.runningSince = undefined;
    });
  }

  send(message: FromProcess): boolean {
    return this.#up && (this.#lines?.send(message) ?? false);
  }

  /** Asks the service, if need be after a reconnect. Rejects after `timeoutMs`, or when `gone` aborts because no caller waits any more. */
  ask(question: Omit<Question, 'id'>, timeoutMs: number, gone?: AbortSignal): Promise<Decision> {
    this.#last += 1;
    const id = this.#last;
    let times = 0;
    const send = () => {
      if (times > 1) this.#questions.settle(id, new Error('the service was lost twice when it was asked'));
      else if (this.send({ ...question, id })) times += 1;
    };
    return this.#questions.ask(id, send, timeoutMs, gone);
  }

  giveUp(): void {
    this.#questions.failAll(new Error('the service is away'));
  }

  end(): void {
    this.#ended = true;
    this.#lines?.close();
  }

  #onMessage(message: ToProcess | Malformed): void {
    if (message.type === 'malformed') this.#onMalformed(message);
    else if (message.type === 'welcome') {
      this.#up = true;
      this.awaySince = undefined;
      this.#options.onWelcome(message.settings);
      this.#questions.sendAgain();
    } else if (message.type === 'decision') this.#questions.settle(message.id, message.decision);
    else if (message.type === 'undecided') this.#questions.settle(message.id, new Error(message.message));
    else this.#options.onMessage(message);
  }

  #onMalformed({ of, id }: Malformed): void {
    const error = new Error(`the service sent a message of type ${of} that is not of its form`);
    if (id !== undefined && (of === 'decision' || of === 'undecided')) this.#questions.settle(id, error);
    this.#options.onFault(error);
  }
}
