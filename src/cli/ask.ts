/** Questions to the person at the terminal, on stderr, so that stdout has only data. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { escapeControls } from '../domain/text.ts';
import { commandIo } from '../lib/command-io.ts';
import { CliError, failure } from './exit.ts';

export function isAttended(): boolean {
  return commandIo().stdin.isTTY === true;
}

export function ask(question: string): Promise<string> {
  return conversation(commandIo().stderr, (next) => next(question));
}

export async function confirm(question: string): Promise<void> {
  if (!/^y(es)?$/i.test((await ask(`${question} [y/N] `)).trim())) throw failure('Nothing was changed.');
}

/** Reads a new password: typed twice without echo, or the first line of standard input if that is no terminal. */
export async function newPassword(email: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const password = await conversation(nowhere, async (next) => {
    if (!isAttended()) return next('');
    const hidden = async (question: string) => {
      commandIo().stderr.write(escapeControls(question));
      return next('').finally(() => commandIo().stderr.write('\n'));
    };
    const first = await hidden(`New password for ${email}: `);
    if ((await hidden('The same again: ')) === first) return first;
    throw failure('The two are not the same; nothing was changed.');
  });
  if (password === '') throw failure('The password is empty; nothing was changed.');
  // For example a backspace that the terminal does not handle.
  if (/\p{Cc}/u.test(password)) throw failure('A password has no control characters; nothing was changed.');
  return password;
}

/** Reads several lines by one reader, so that lines typed ahead are kept as answers. `output` gets the echo. */
async function conversation(
  output: NodeJS.WritableStream,
  talk: (next: (question: string) => Promise<string>) => Promise<string>,
): Promise<string> {
  const reader = createInterface({ input: commandIo().stdin, output, terminal: isAttended() });
  reader.on('SIGINT', () => reader.close());
  const lines = reader[Symbol.asyncIterator]();
  try {
    return await talk(async (question) => {
      reader.setPrompt(escapeControls(question));
      reader.prompt();
      const line = await lines.next();
      if (line.done && isAttended()) throw new CliError('interrupted', 'Cancelled; nothing was changed.');
      return line.done ? '' : line.value;
    });
  } finally {
    reader.close();
  }
}
