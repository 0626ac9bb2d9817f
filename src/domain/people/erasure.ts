/** Erases people: the names that identify a person, and the pseudonyms that replace them, which cannot be traced back. */
import type { AuditRecord, EntryTexts } from '../audit/audit.ts';

export interface PersonNames {
  userId: string;
  /** Unique to this person: addresses, subjects at issuers, full names. */
  distinct: readonly string[];
  /** Possibly shared with other people: a first name, a login name. */
  common: readonly string[];
}

const erasedText = '[erased]';
export const erasedName = 'Erased person';

export function erasedEmail(userId: string): string {
  return `erased-${ulidOf(userId)}@andromeda.invalid`;
}

/** The login name of an erased account that was never used on a cluster. */
export function erasedUsername(userId: string): string {
  return `erased-${ulidOf(userId).slice(-16)}`;
}

function ulidOf(userId: string): string {
  return userId.replace(/^user_/, '').toLowerCase();
}

/** Sorts names into unique and common ones; drops display names of one or two letters, which occur in too many texts. */
export function personNames(
  userId: string,
  names: { unique: readonly string[]; shown: readonly (string | null)[] },
): PersonNames {
  const shown = names.shown.filter((name) => name !== null && name.trim().length > 2) as string[];
  const isFull = (name: string) => /\S\s+\S/.test(name);
  return {
    userId,
    distinct: [...new Set([...names.unique, ...shown.filter(isFull)])],
    common: [...new Set(shown.filter((name) => !isFull(name)))],
  };
}

/** Makes a function that returns an audit entry's texts without the person. */
export function createEraser({ userId, distinct, common }: PersonNames): (entry: AuditRecord) => EntryTexts {
  const anywhere = mentionOf(distinct);
  const ofTheirs = mentionOf([...distinct, ...common]);
  return (entry) => {
    const { target, reason, source_address: address, details } = entry;
    const isOwn = entry.actor_user_id === userId;
    const isTheirs = isOwn || entry.subject_user_id === userId;
    const without = (text: string) => replaceMentions(text, isTheirs ? ofTheirs : anywhere);
    // Session details contain text that the person typed, which can be anything.
    const isSession = isTheirs && entry.operation.startsWith('ssh.');
    return {
      target: without(target),
      reason: isOwn ? '' : without(reason),
      source_address: isOwn ? '' : address,
      details: isSession ? '' : without(details),
    };
  };
}

/** Removes the person's unique addresses and names from a text. */
export function eraseFromText(text: string, { distinct }: PersonNames): string {
  return replaceMentions(text, mentionOf(distinct));
}

/** Removes the person's unique addresses and names from a JSON text. */
export function eraseFromJson(json: string, { distinct }: PersonNames): string {
  return replaceMentions(json, mentionOf(distinct.map((name) => JSON.stringify(name).slice(1, -1))));
}

function replaceMentions(text: string, mention: RegExp | undefined): string {
  return mention ? text.replaceAll(mention, erasedText) : text;
}

/** Matches names as whole words, the longest first. */
function mentionOf(names: readonly string[]): RegExp | undefined {
  const longestFirst = names.filter((name) => name !== '').toSorted((a, b) => b.length - a.length);
  if (longestFirst.length === 0) return undefined;
  const any = longestFirst.map((name) => name.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')).join('|');
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${any})(?![\\p{L}\\p{N}])`, 'giu');
}
