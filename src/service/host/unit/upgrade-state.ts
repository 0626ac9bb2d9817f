/**
 * What an upgrade leaves next to the program: the program before, `PROGRAM.before`, and the state file, `PROGRAM.before.json`. There is
 * something to go back to where both are there. Another version reads the state file too, so its fields keep their names.
 */
import { hash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { flush, writeWhole } from '../../../lib/whole-file.ts';
import type { WrittenSince } from '../../../store/data-dir/before-upgrade.ts';

export interface UpgradeState {
  version: string;
  /** The last step of the database's schema then; undefined: there was none. */
  schema?: string | undefined;
  wasStarted: boolean;
  /** Whether an upgrade, or a way back, has begun and not ended. */
  isUnderWay: boolean;
  /** What is lost by the copy of the database that took its place, or is about to. */
  lost?: WrittenSince | undefined;
}

export function programBefore(program: string): string {
  return `${program}.before`;
}

export function readState(program: string): UpgradeState | undefined {
  const file = stateFile(program);
  if (!existsSync(file) || !existsSync(programBefore(program))) return undefined;
  return JSON.parse(readFileSync(file, 'utf8')) as UpgradeState;
}

export function writeState(program: string, state: UpgradeState): void {
  writeWhole(stateFile(program), JSON.stringify(state), 0o644);
  flush(dirname(program));
}

export function keepProgram(program: string, state: UpgradeState): void {
  forgetState(program);
  // Another name for the same file, which takes no space.
  linkSync(program, programBefore(program));
  writeState(program, state);
}

export function forgetState(program: string): void {
  // First: it is what says that there is something to go back to.
  rmSync(stateFile(program), { force: true });
  rmSync(programBefore(program), { force: true });
}

/** In the place of one that may be running: at every instant there is one. */
export function installProgram(from: string, to: string): void {
  const made = `${to}.new`;
  mkdirSync(dirname(to), { recursive: true, mode: 0o755 });
  rmSync(made, { force: true });
  copyFileSync(from, made);
  chmodSync(made, 0o755);
  flush(made);
  renameSync(made, to);
  flush(dirname(to));
}

export function isSame(one: string, other: string): boolean {
  if (statSync(one).size !== statSync(other).size) return false;
  const [first, second] = [one, other].map((file) => hash('sha256', readFileSync(file)));
  return first === second;
}

function stateFile(program: string): string {
  return `${program}.before.json`;
}
