/**
 * One of the service's SSH keys with the one that takes its place, as one text: for where they are kept together and not as
 * files (`key-set.ts`). Each step makes the text that is to be there next.
 */
import { DomainError } from '../../domain/error.ts';
import type { KeyStep } from '../../domain/key-rotation.ts';
import { generateSshKey, parseSshKey, type SshKeyFile } from './key-file.ts';
import { loadSshKeySet, type SshKeySet } from './key-set.ts';

/** Private keys in OpenSSH's format. */
export interface SshKeyTexts {
  current: string;
  next?: string;
  previous?: string;
}

export function makeSshKeySet(): string {
  return sshKeySetText({ current: generateSshKey().privateKey });
}

function sshKeySetText({ current, next, previous }: SshKeyTexts): string {
  return JSON.stringify({ current, next, previous });
}

/** Throws `invalid_state` with a sentence that begins with `name`. It quotes nothing of the text. */
export function parseSshKeySet(text: string, name: string): SshKeySet {
  const { current, next, previous } = readSshKeyTexts(text, name);
  const key = (privateKey: string): SshKeyFile => {
    const parsed = parseSshKey(privateKey);
    if (!parsed) throw unusable(name);
    return parsed;
  };
  return {
    ...key(current),
    ...(next !== undefined && { next: key(next) }),
    ...(previous !== undefined && { previous: key(previous) }),
  };
}

/** What a step makes of the text. One that has nothing to do changes nothing. */
export function stepSshKeySet(step: KeyStep, text: string, name: string): string {
  const keys = readSshKeyTexts(text, name);
  const { current, next, previous } = keys;
  switch (step) {
    case 'announce':
      return sshKeySetText({ ...keys, next: generateSshKey().privateKey });
    case 'switch':
      return next === undefined ? text : sshKeySetText({ current: next, previous: current });
    case 'back':
      return previous === undefined ? text : sshKeySetText({ current: previous, next: current });
    case 'withdraw':
      return sshKeySetText({ current, ...(previous !== undefined && { previous }) });
    case 'retire':
      return sshKeySetText({ current, ...(next !== undefined && { next }) });
  }
}

export function readSshKeyTexts(text: string, name: string): SshKeyTexts {
  try {
    const { current, next, previous } = JSON.parse(text) as Partial<SshKeyTexts>;
    const others = [next, previous].filter((one) => one !== undefined);
    if (typeof current === 'string' && others.every((one) => typeof one === 'string'))
      return { current, ...(next !== undefined && { next }), ...(previous !== undefined && { previous }) };
  } catch {
    // Thrown below, without the parser's message: it quotes the text, and the text is secret.
  }
  throw unusable(name);
}

function unusable(name: string): DomainError {
  return new DomainError(
    'invalid_state',
    `${name} holds no SSH key that can be used. Restore it from a backup.`,
  );
}

/** The text of keys that are in files (`key-set.ts`). */
export function readKeySetFiles(file: string): string {
  const { privateKey, next, previous } = loadSshKeySet(file);
  return sshKeySetText({
    current: privateKey,
    ...(next && { next: next.privateKey }),
    ...(previous && { previous: previous.privateKey }),
  });
}
