/** The verbs that nearly every noun has, in one line each. */
import type { Answer } from '../answer.ts';
import { reads, type Verb, writes } from '../verb.ts';

interface Printer<T> {
  one(json: T): Answer;
  many(json: unknown, rows: readonly T[]): Answer;
}

/** `list`: everything at `/operator/<nouns>`, which the API gives under that name. */
export function lists<T>(noun: string, summary: string, printer: Printer<T>): Verb {
  return reads({
    usage: 'list',
    summary,
    example: `${noun} list`,
    async run({ api }) {
      const json = await api.get<Record<string, T[]>>(`/operator/${noun}s`);
      return printer.many(json, json[`${noun}s`] ?? []);
    },
  });
}

/** A change to one thing that is named by its ID: `POST /operator/<nouns>/<id>/<verb>`. */
export function changesOne<T>(
  noun: string,
  verb: string,
  summary: string,
  printer: Printer<T>,
  reason?: string,
): Verb {
  const why = reason === undefined ? '' : ` --reason '${reason}'`;
  return writes({
    usage: `${verb} <id>`,
    summary,
    example: `${noun} ${verb} ${noun}_01J8Z3XK5T7Q2M4N6P8R0S1V3W${why}`,
    async run({ api }, id = '') {
      const path = `/operator/${noun}s/${encodeURIComponent(id)}/${verb}`;
      return printer.one(await api.write('POST', path));
    },
  });
}
