/**
 * Questions to the other servers on the same database. A question goes to all of them at once, and is settled when
 * every live one has answered, or at its timeout.
 */
import { newUuid } from '../../../domain/id.ts';
import { messageOf } from '../../../lib/error-message.ts';
import type { Logger } from '../../../lib/log.ts';
import { Questions } from '../../../lib/questions.ts';
import type { Store } from '../../../store/engine/index.ts';
import { inParts, type Messages } from '../../../store/engine/messages.ts';
import { listServers } from '../../../store/servers/servers.ts';
import type { Answers, Peers } from './peers.ts';

interface OpenQuestion {
  /** Live servers whose last part has not come; undefined until they are known. */
  awaited: Set<string> | undefined;
  /** Servers that answered before it was known which are live. */
  done: Set<string>;
  parts: unknown[];
}

/** Limit on questions of a topic answered at once. A server that works correctly never asks more. */
const mostAnswering = 256;
/** Limit on the part of an answer in one message, which has other fields as well. */
const mostBytes = 3_500;

export function createAsking(store: Store, log: Logger): Pick<Peers, 'ask' | 'answer'> & { stop(): void } {
  const { messages, server } = store;
  const questions = new Questions<string, void>();
  const asked = new Map<string, OpenQuestion>();
  const stops = [messages.on('answer', (body, from) => takeAnswer(body as Partial<Answer>, from))];
  const failed = (topic: string) => (error: unknown) =>
    log.warn('servers.message.failed', { topic, error: messageOf(error) });

  function takeAnswer({ id = '', parts = [], isLast = false }: Partial<Answer>, from: string): void {
    const question = asked.get(id);
    if (!question || !Array.isArray(parts)) return;
    question.parts.push(...parts);
    if (!isLast) return;
    question.done.add(from);
    question.awaited?.delete(from);
    if (question.awaited?.size === 0) questions.settle(id);
  }

  async function send(topic: string, id: string, body: object): Promise<void> {
    const others = (await listServers(store)).filter((one) => one.isLive && one.id !== server.id);
    const question = asked.get(id);
    if (!question || others.length === 0) return questions.settle(id);
    question.awaited = new Set(others.map((one) => one.id)).difference(question.done);
    await messages.send(`ask ${topic}`, { id, ...body });
  }

  return {
    async ask(topic, body, timeoutMs) {
      const id = newUuid();
      const question: OpenQuestion = { awaited: undefined, done: new Set(), parts: [] };
      asked.set(id, question);
      // If sending fails, this still waits until the timeout: no server has answered.
      const start = () => void send(topic, id, body).catch(failed(topic));
      await questions.ask(id, start, timeoutMs).catch(() => {});
      asked.delete(id);
      return question.parts;
    },
    answer(topic, answerTo) {
      stops.push(answerQuestions(messages, topic, answerTo, failed(topic)));
    },
    stop() {
      for (const stop of stops.splice(0)) stop();
      questions.failAll(new Error('this server stops'));
    },
  };
}

/** One message with a part of an answer, or all of it. */
interface Answer {
  id: string;
  parts: unknown[];
  isLast: boolean;
}

function answerQuestions(
  messages: Messages,
  topic: string,
  answerTo: (body: unknown) => Promise<Answers>,
  onFault: (error: unknown) => void,
): () => void {
  let answering = 0;
  const reply = async (body: unknown) => {
    const { id } = body as { id: string };
    const all = inParts(await answerTo(body), mostBytes);
    for (const [index, parts] of all.entries())
      await messages.send('answer', { id, parts, isLast: index === all.length - 1 });
  };
  return messages.on(`ask ${topic}`, (body) => {
    if (answering >= mostAnswering) return onFault(new Error('too many questions at once'));
    answering += 1;
    reply(body)
      .catch(onFault)
      .finally(() => {
        answering -= 1;
      });
  });
}
