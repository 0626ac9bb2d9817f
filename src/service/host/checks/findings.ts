/** The findings of `check` and `doctor`, one line each. */
import { DomainError } from '../../../domain/error.ts';
import type { Problem } from '../../../domain/installation-state.ts';
import { escapeControls } from '../../../domain/text.ts';
import { commandIo } from '../../../lib/command-io.ts';

export interface Finding {
  /** `warn`: it works today. `wrong`: it does not, or not as it should. */
  verdict: 'ok' | 'warn' | 'wrong';
  about: string;
  /** One sentence or two: the state and, unless that is good, the advice. */
  text: string;
}

export const ok = (about: string, text: string): Finding => ({ verdict: 'ok', about, text });
export const warn = (about: string, text: string): Finding => ({ verdict: 'warn', about, text });
export const wrong = (about: string, text: string): Finding => ({ verdict: 'wrong', about, text });

/** The finding for a problem that a running service shows to operators. */
export function findingOf(
  about: string,
  { urgency, message, action }: Omit<Problem, 'area' | 'about'>,
): Finding {
  return { verdict: urgency === 'now' ? 'wrong' : 'warn', about, text: `${message} ${action}` };
}

/** The findings, followed by a refusal that ended them. */
export async function* orWrong(
  about: string,
  findings: Iterable<Finding> | AsyncIterable<Finding>,
): AsyncGenerator<Finding> {
  try {
    yield* findings;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    for (const fault of error.message.split('\n')) yield wrong(about, fault);
  }
}

/**
 * Prints each finding as it comes, or all of them as JSON; with `quiet`, leaves out those that are ok. Resolves to
 * the exit status: 1 where something is wrong.
 */
export async function printFindings(
  findings: AsyncIterable<Finding>,
  quiet: boolean,
  json = false,
): Promise<number> {
  let status = 0;
  const all: Finding[] = [];
  for await (const finding of findings) {
    const { verdict, about, text } = finding;
    if (verdict === 'wrong') status = 1;
    if (quiet && verdict === 'ok') continue;
    all.push(finding);
    if (json) continue;
    const line = `${verdict.padEnd(5)}  ${about.padEnd(14)}  ${text.replaceAll('\n', ' ')}`;
    commandIo().stdout.write(`${escapeControls(line)}\n`);
  }
  if (json) commandIo().stdout.write(`${escapeControls(JSON.stringify({ findings: all }, null, 2))}\n`);
  return status;
}
