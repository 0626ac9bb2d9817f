/** The verbs that nearly every noun has, in one line each. */
import type { Answer } from '../answer.ts';
import type { Api, Reader } from '../net/api.ts';
import { reads, type Verb, writes } from '../verb.ts';

interface Printer<T> {
  one(json: T): Answer;
  many(json: unknown, rows: readonly T[]): Answer;
}

/** `list`: everything of one kind; `rows` finds it in the answer. */
export function lists<J, T>(
  noun: string,
  summary: string,
  printer: Printer<T>,
  read: (api: Reader) => Promise<J>,
  rows: (json: J) => readonly T[],
): Verb {
  return reads({
    usage: 'list',
    summary,
    example: `${noun} list`,
    async run({ api }) {
      const json = await read(api);
      return printer.many(json, rows(json));
    },
  });
}

/** A change to one thing that is named by its ID. */
export function changesOne<T>(
  noun: string,
  verb: string,
  summary: string,
  printer: Printer<T>,
  change: (api: Api, id: string) => Promise<T>,
  reason?: string,
): Verb {
  const why = reason === undefined ? '' : ` --reason '${reason}'`;
  return writes({
    usage: `${verb} <id>`,
    summary,
    example: `${noun} ${verb} ${noun}_01J8Z3XK5T7Q2M4N6P8R0S1V3W${why}`,
    run: async ({ api }, id = '') => printer.one(await change(api, id)),
  });
}
