/**
 * A part of the composition root: what this server asks of the others that share its database. A question goes to all of them
 * at once, and is answered when every one that is live has answered, or when its time is up. On SQLite there are none.
 */
import { newUuid } from '../domain/id.ts';
import { messageOf } from '../lib/error-message.ts';
import type { Logger } from '../lib/log.ts';
import type { Store } from '../store/index.ts';
import { listServers } from '../store/servers.ts';

/** What one of the others answers: one part or several, each small enough for a message. */
export type Answer = readonly object[];

export interface OtherServers {
  /** The answers that came in time, together. It never fails. */
  ask(topic: string, body: object, timeoutMs: number): Promise<unknown[]>;
  /** Answers what the others ask. */
  answer(topic: string, answerTo: (body: unknown) => Promise<Answer>): void;
  stop(): void;
}

interface Question {
  /** Servers whose last part has not come. */
  awaited: Set<string> | undefined;
  /** Those that answered before it was known who is live. */
  done: Set<string>;
  parts: unknown[];
  settle(): void;
}

/** Questions that are being answered; more than this nobody asks who works as this one does. */
const mostAnswering = 256;

export function createOtherServers(store: Store, log: Logger): OtherServers {
  const { messages, server } = store;
  const asked = new Map<string, Question>();
  const stops: (() => void)[] = [];
  let answering = 0;
  const failed = (topic: string) => (error: unknown) =>
    log.warn('servers.message.failed', { topic, error: messageOf(error) });

  stops.push(
    messages.on('answer', (body, from) => {
      const {
        id = '',
        parts = [],
        isLast = false,
      } = body as { id?: string; parts?: unknown[]; isLast?: boolean };
      const question = asked.get(id);
      if (!question || !Array.isArray(parts)) return;
      question.parts.push(...parts);
      if (!isLast) return;
      question.done.add(from);
      question.awaited?.delete(from);
      if (question.awaited?.size === 0) question.settle();
    }),
  );

  async function send(topic: string, id: string, body: object): Promise<void> {
    const question = asked.get(id);
    const others = (await listServers(store)).filter((one) => one.isLive && one.id !== server.id);
    if (!question || others.length === 0) return question?.settle();
    question.awaited = new Set(others.map((one) => one.id)).difference(question.done);
    await messages.send(`ask ${topic}`, { id, ...body });
  }

  return {
    async ask(topic, body, timeoutMs) {
      if (server.isAlone) return [];
      const id = newUuid();
      const parts: unknown[] = [];
      await new Promise<void>((resolve) => {
        const settle = () => {
          clearTimeout(late);
          asked.delete(id);
          resolve();
        };
        const late = setTimeout(settle, timeoutMs);
        asked.set(id, { awaited: undefined, done: new Set(), parts, settle });
        // Where it cannot be asked, the time is waited for: nobody has answered.
        send(topic, id, body).catch(failed(topic));
      });
      return parts;
    },
    answer(topic, answerTo) {
      const reply = async (body: unknown) => {
        const { id } = body as { id: string };
        const all = inMessages(await answerTo(body));
        for (const [index, parts] of all.entries())
          await messages.send('answer', { id, parts, isLast: index === all.length - 1 });
      };
      stops.push(
        messages.on(`ask ${topic}`, (body) => {
          if (answering >= mostAnswering) return;
          answering += 1;
          reply(body)
            .catch(failed(topic))
            .finally(() => {
              answering -= 1;
            });
        }),
      );
    },
    stop() {
      for (const stop of stops.splice(0)) stop();
      for (const question of [...asked.values()]) question.settle();
    },
  };
}

/** With what stands around them they fit into a message. */
const mostBytes = 3_500;

function inMessages(answer: Answer): object[][] {
  const messages: object[][] = [[]];
  let bytes = 0;
  for (const part of answer) {
    const size = Buffer.byteLength(JSON.stringify(part)) + 1;
    if (bytes + size > mostBytes && messages.at(-1)?.length) {
      messages.push([]);
      bytes = 0;
    }
    messages.at(-1)?.push(part);
    bytes += size;
  }
  return messages;
}
