/** `andromeda completion`: what can be typed next, for a shell, made from the program's own commands. */
import type { Command } from 'commander';
import { type Outcome, usage } from '../../exit.ts';
import { print } from '../../output.ts';
import { bashScript } from './bash.ts';
import { fishScript } from './fish.ts';
import { type Position, treeOf } from './tree.ts';
import { zshScript } from './zsh.ts';

const scripts: Record<string, (positions: readonly Position[]) => string> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** Prints the script; `program` has all its commands by now. */
export function completion(shell: string, program: Command): Outcome {
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (!script) throw usage(`'${shell}' is not a shell that this completes for; take bash, zsh or fish.`);
  print(script(treeOf(program)).trimEnd());
  return 'ok';
}
