/** Addresses as people paste them: of a spreadsheet, of a mail's header, one a line. */
import { isEmail } from '../../domain/people/person.ts';

export interface Address {
  email: string;
  /** As the mail's header has it; left out where it has none. */
  name?: string;
}

export interface Addresses {
  found: Address[];
  /** Words that are no address, and belong to none. */
  unread: string[];
}

export const longestText = 20_000;

/** `Ada <ada@physics.example>`, with or without quotes. The name has a bound, so that a long line costs no more than its length. */
const withName = /(?:"([^"\n]{0,200})"[ \t]*|([^<>,;\n\t"]{0,200}))<\s*([^<>\s]{1,300})\s*>/g;

export function readAddresses(text: string): Addresses {
  const found = new Map<string, Address & { position: number }>();
  const unread: string[] = [];
  const add = (position: number, written: string, name = '') => {
    const email = written.replace(/^mailto:/i, '').replace(/[.:]+$/, '');
    if (!isEmail(email)) {
      unread.push(written);
      return;
    }
    const key = email.toLowerCase();
    if (found.has(key)) return;
    const plain = name.replace(/\s+/g, ' ').trim();
    found.set(key, { email, position, ...(plain !== '' && { name: plain }) });
  };
  const rest = text
    .slice(0, longestText)
    .replace(
      withName,
      (whole, quoted: string | undefined, bare: string | undefined, email: string, position: number) => {
        // An address before a name is one of its own: "ada@x, Bob <bob@x>" has a comma, "ada@x Bob <bob@x>" has none.
        const parts = (quoted ?? bare ?? '').split(/\s+/);
        for (const word of parts.filter((one) => one.includes('@'))) add(position, word);
        add(position, email, parts.filter((one) => !one.includes('@')).join(' '));
        return ' '.repeat(whole.length);
      },
    );
  for (const { 0: word, index } of rest.matchAll(/[^\s,;<>()"']+/g)) add(index, word);
  return {
    found: [...found.values()]
      .sort((a, b) => a.position - b.position)
      .map(({ position: _, ...address }) => address),
    unread: [...new Set(unread)],
  };
}
