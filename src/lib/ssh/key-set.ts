/**
 * One of the service's SSH keys, with the one that takes its place: `FILE` is in use, `FILE.next` is announced, and
 * `FILE.previous` was in use before. Each step leaves files that the service can start with, wherever it is cut off.
 */
import { existsSync, linkSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { writeWhole } from '../whole-file.ts';
import { generateSshKey, loadSshKey, type SshKeyFile } from './key-file.ts';

export interface SshKeySet extends SshKeyFile {
  next?: SshKeyFile;
  previous?: SshKeyFile;
}

/** The key in `file`, made if it is missing, and the others where they are. Throws as `loadSshKey` does. */
export function loadSshKeySet(file: string): SshKeySet {
  const current = loadSshKey(file);
  const other = (name: 'next' | 'previous') => {
    const path = `${file}.${name}`;
    const key = existsSync(path) ? loadSshKey(path) : undefined;
    // A step that was cut off leaves two names of one key.
    return key && key.publicKey !== current.publicKey ? { [name]: key } : {};
  };
  return { ...current, ...other('next'), ...other('previous') };
}

/** Every key that holds, the one in use first. */
export function heldKeys({ next, previous, ...current }: SshKeySet): SshKeyFile[] {
  return [current, ...(next ? [next] : []), ...(previous ? [previous] : [])];
}

/** Makes the next key. */
export function announceSshKey(file: string): void {
  writeWhole(`${file}.next`, generateSshKey().privateKey);
}

/** Puts the next key into use, and keeps the one before. */
export function switchSshKey(file: string): void {
  replace(file, 'next', 'previous');
}

/** Puts the key from before into use again; what was in use is the next one again. */
export function switchSshKeyBack(file: string): void {
  replace(file, 'previous', 'next');
}

export function withdrawSshKey(file: string): void {
  rmSync(`${file}.next`, { force: true });
}

export function retireSshKey(file: string): void {
  rmSync(`${file}.previous`, { force: true });
}

/** Corrects the public key in the file next to the private key: after an interrupted step it may be that of another key. */
export function writePublicPart(file: string, { publicKey }: SshKeyFile): void {
  const text = `${publicKey} andromeda\n`;
  const name = `${file}.pub`;
  if (!existsSync(name) || readFileSync(name, 'utf8') !== text) writeWhole(name, text);
}

/** The name `file` leads to a whole key at any instant. */
function replace(file: string, from: 'next' | 'previous', to: 'next' | 'previous'): void {
  rmSync(`${file}.${to}`, { force: true });
  linkSync(file, `${file}.${to}`);
  renameSync(`${file}.${from}`, file);
  writePublicPart(file, loadSshKey(file));
}
