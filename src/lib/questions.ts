/** Open questions to another process or server. Each is removed when it is answered or times out. */
interface Question<Answer> {
  send(): void;
  settle(answer: Answer | Error): void;
}

export class Questions<Id, Answer> {
  readonly #open = new Map<Id, Question<Answer>>();

  /** Sends a question. Rejects after `timeoutMs`, or when `gone` aborts because no caller waits any more. */
  ask(id: Id, send: () => void, timeoutMs: number, gone?: AbortSignal): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const settle = (answer: Answer | Error) => {
        clearTimeout(late);
        gone?.removeEventListener('abort', withdraw);
        this.#open.delete(id);
        if (answer instanceof Error) reject(answer);
        else resolve(answer);
      };
      const withdraw = () => settle(new Error('the connection that it was about is gone'));
      const late = setTimeout(
        () => settle(new Error(`there was no answer within ${timeoutMs} ms`)),
        timeoutMs,
      );
      this.#open.set(id, { send, settle });
      gone?.addEventListener('abort', withdraw);
      if (gone?.aborted) withdraw();
      else send();
    });
  }

  /** Settles a question; with an error, it rejects. A question that is no longer open is ignored. */
  settle(id: Id, answer: Answer | Error): void {
    this.#open.get(id)?.settle(answer);
  }

  failAll(error: Error): void {
    for (const { settle } of [...this.#open.values()]) settle(error);
  }

  sendAgain(): void {
    for (const { send } of [...this.#open.values()]) send();
  }
}
