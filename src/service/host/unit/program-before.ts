/**
 * What an upgrade keeps of the previous version, next to the program: `PROGRAM.upgrading` while one is under way,
 * `PROGRAM.before` when it is done. Each is written atomically. File names in it are the same in all versions since 0.2.0.
 */
import { hash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { writeWhole } from '../../../lib/whole-file.ts';
import type { WrittenSince } from '../../../store/data-dir/before-upgrade.ts';

/** What is noted of the service as it was. */
export interface BeforeNote {
  version: string;
  /** The last step of the database's schema; undefined: there was none. */
  schema?: string | undefined;
  wasStarted: boolean;
  /** What is lost by the copy of the database that takes its place again. */
  lost?: WrittenSince;
}

export interface Before extends BeforeNote {
  directory: string;
  /** Its program. */
  program: string;
}

/** The way back from an upgrade that is under way; undefined where none is. */
export function findBegun(program: string): Before | undefined {
  return read(`${program}.upgrading`);
}

/** The way back from the last upgrade; undefined where there is none. */
export function findBefore(program: string): Before | undefined {
  return findBegun(program) ?? read(`${program}.before`);
}

/** Keeps the program, and of `units` those that are there, as an upgrade begins. */
export function keepProgram(program: string, units: readonly string[], note: BeforeNote): Before {
  const directory = `${program}.upgrading`;
  const making = `${directory}.new`;
  rmSync(making, { recursive: true, force: true });
  mkdirSync(join(making, 'units'), { recursive: true, mode: 0o755 });
  // By another name for the same file, which costs no room.
  linkSync(program, join(making, 'program'));
  for (const unit of units.filter((one) => existsSync(one))) copyFileSync(unit, unitIn(making, unit));
  writeFileSync(join(making, 'note.json'), JSON.stringify(note), { flush: true });
  forget(directory);
  renameSync(making, directory);
  flush(dirname(directory));
  return { ...note, directory, program: join(directory, 'program') };
}

/** The upgrade is done: what it kept takes the place of what the one before it had kept. */
export function completeUpgrade(program: string, { directory }: Before): void {
  forget(`${program}.before`);
  renameSync(directory, `${program}.before`);
}

/** Notes what is lost, before it is. */
export function noteLost(before: Before, lost: WrittenSince): void {
  before.lost = lost;
  const { version, schema, wasStarted } = before;
  const note = { version, schema, wasStarted, lost };
  writeWhole(join(before.directory, 'note.json'), JSON.stringify(note), 0o644);
}

/** There is nothing to go back to any more, also not from the upgrade before. */
export function forgetAll(program: string): void {
  for (const name of ['before', 'upgrading']) forget(`${program}.${name}`);
}

export function forget(directory: string): void {
  // First, for without it there is nothing to go back to.
  rmSync(join(directory, 'note.json'), { force: true });
  rmSync(directory, { recursive: true, force: true });
}

/** Puts back those of `units` that are not as they were. Returns whether there were any. */
export function putBackUnits({ directory }: Before, units: readonly string[]): boolean {
  const changed = units.filter((unit) => !isSame(unit, unitIn(directory, unit)));
  for (const unit of changed) {
    const kept = unitIn(directory, unit);
    if (existsSync(kept)) replaceFile(kept, unit, 0o644);
    else rmSync(unit);
  }
  return changed.length > 0;
}

/** In the place of one that may be running: at every instant there is one. */
export function installProgram(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o755 });
  replaceFile(from, to, 0o755);
}

/** Whether both are there with the same content, or neither. */
export function isSame(one: string, other: string): boolean {
  const sizes = [one, other].map((file) => statSync(file, { throwIfNoEntry: false })?.size);
  if (sizes[0] !== sizes[1] || sizes[0] === undefined) return sizes[0] === sizes[1];
  const [first, second] = [one, other].map((file) => hash('sha256', readFileSync(file)));
  return first === second;
}

function read(directory: string): Before | undefined {
  const file = join(directory, 'note.json');
  if (!existsSync(file)) return undefined;
  const note = JSON.parse(readFileSync(file, 'utf8')) as BeforeNote;
  return { ...note, directory, program: join(directory, 'program') };
}

function unitIn(directory: string, unit: string): string {
  return join(directory, 'units', unit.slice(unit.lastIndexOf('/') + 1));
}

function replaceFile(from: string, to: string, mode: number): void {
  const made = `${to}.new`;
  rmSync(made, { force: true });
  copyFileSync(from, made);
  chmodSync(made, mode);
  flush(made);
  renameSync(made, to);
  flush(dirname(to));
}

function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}
