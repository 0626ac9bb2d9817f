/** What identifies a person, and the pseudonym that replaces it once they are erased, which leads to no person. */
import type { AuditRecord, EntryTexts } from '../audit/audit.ts';

export interface PersonNames {
  userId: string;
  /** Unique to this person: addresses, subjects at issuers, full names. */
  distinct: readonly string[];
  /** May also be another person's: a first name, a login name. */
  common: readonly string[];
}

const erasedText = '[erased]';
export const erasedName = 'Erased person';

export function erasedEmail(userId: string): string {
  return `erased-${ulidOf(userId)}@andromeda.invalid`;
}

/** The login name of an erased account where it was never used on a cluster. */
export function erasedUsername(userId: string): string {
  return `erased-${ulidOf(userId).slice(-16)}`;
}

function ulidOf(userId: string): string {
  return userId.replace(/^user_/, '').toLowerCase();
}

/** Sorts names into unique and common ones; leaves out shown names of one or two letters, which occur in too many words. */
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

/** How an entry of the audit trail reads without the person. */
export function createEraser({ userId, distinct, common }: PersonNames): (entry: AuditRecord) => EntryTexts {
  const anywhere = mentionOf(distinct);
  const ofTheirs = mentionOf([...distinct, ...common]);
  return (entry) => {
    const { target, reason, source_address: address, details } = entry;
    const isOwn = entry.actor_user_id === userId;
    const isTheirs = isOwn || entry.subject_user_id === userId;
    const without = (text: string) => replaceMentions(text, isTheirs ? ofTheirs : anywhere);
    // What they typed themselves can hold anything.
    const isSession = isTheirs && entry.operation.startsWith('ssh.');
    return {
      target: without(target),
      reason: isOwn ? '' : without(reason),
      source_address: isOwn ? '' : address,
      details: isSession ? '' : without(details),
    };
  };
}

/** A text without the addresses and names that only the person has. */
export function eraseFromText(text: string, { distinct }: PersonNames): string {
  return replaceMentions(text, mentionOf(distinct));
}

/** A JSON text without the addresses and names that only the person has. */
export function eraseFromJson(json: string, { distinct }: PersonNames): string {
  return replaceMentions(json, mentionOf(distinct.map((name) => JSON.stringify(name).slice(1, -1))));
}

function replaceMentions(text: string, mention: RegExp | undefined): string {
  return mention ? text.replaceAll(mention, erasedText) : text;
}

/** Finds names where they stand for themselves, the longest first. */
function mentionOf(names: readonly string[]): RegExp | undefined {
  const longestFirst = names.filter((name) => name !== '').toSorted((a, b) => b.length - a.length);
  if (longestFirst.length === 0) return undefined;
  const any = longestFirst.map((name) => name.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')).join('|');
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${any})(?![\\p{L}\\p{N}])`, 'giu');
}
