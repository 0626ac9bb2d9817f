/** `andromeda completion`: generates a shell's completion script from the program's own commands. */
import { type Command, Option } from 'commander';
import { exitStatus, usage } from '../exit.ts';
import { print } from '../output.ts';

/** A position on a command line. `path`: the commands typed so far, each after a slash; empty for the program itself. */
interface Position {
  path: string;
  commands: Candidate[];
  flags: Option[];
}

interface Candidate {
  name: string;
  summary: string;
}

const help = new Option('-h, --help', 'explain it');
/** A flag of `ssh` that Commander does not know, because `ssh` passes its arguments on to OpenSSH. */
const ofSsh = new Option('--job [ID]', 'into a running job');
/** Lists the person's jobs at completion time. The filter lets only digits, `_` and `+` reach the shell. */
const jobIds = `$(andromeda jobs -o json 2>/dev/null | sed -n 's/^ *"id": "\\([0-9_+]*\\)",$/\\1/p')`;
const scripts: Record<string, (positions: readonly Position[]) => string> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export function completion(shell: string, program: Command): number {
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (!script) throw usage(`'${shell}' is not a shell that this completes for; take bash, zsh or fish.`);
  print(script(treeOf(program)).trimEnd());
  return exitStatus.ok;
}

function treeOf(program: Command, path = ''): Position[] {
  const commands = program.commands.map((one) => ({ name: one.name(), summary: one.description() }));
  const below = program.commands.flatMap((one) => treeOf(one, `${path}/${one.name()}`));
  return [
    { path, commands, flags: [...program.options, ...(path === '/ssh' ? [ofSsh] : []), help] },
    ...below,
  ];
}

function pathsOf(positions: readonly Position[]): string[] {
  return positions.map(({ path }) => path).filter((path) => path !== '');
}

function namesOf({ short, long }: Option): string[] {
  return [short, long].filter((name) => name !== undefined);
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

function valuesOf({ argChoices, long }: Option): string | undefined {
  return long === '--job' ? jobIds : argChoices?.join(' ');
}

/** Quotes text for a shell; `quote` is the shell's escape of a single quote. */
function quoted(text: string, quote: string): string {
  return `'${text.replaceAll("'", quote)}'`;
}

function bashScript(positions: readonly Position[]): string {
  return `# bash completion for andromeda: source <(andromeda completion bash)
_andromeda() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} at='' words='' i
  COMPREPLY=()
${bourneCases(positions, {
  typed: 'COMP_WORDS',
  range: 'i = 1; i < COMP_CWORD',
  current: '$current',
  offer: (values) => (values === undefined ? '' : `COMPREPLY=($(compgen -W "${values}" -- "$current")); `),
  find: (entries) => `words='${entries.map(({ name }) => name).join(' ')}'`,
})}
  [[ -z $words ]] || COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _andromeda andromeda
`;
}

function zshScript(positions: readonly Position[]): string {
  const described = ({ name, summary }: Candidate) =>
    quoted(`${name.replaceAll(':', '\\:')}:${summary}`, "'\\''");
  return `#compdef andromeda
# zsh completion for andromeda: source <(andromeda completion zsh), or put it into $fpath as _andromeda
_andromeda() {
  local at='' i previous=\${words[CURRENT-1]}
  local -a found
${bourneCases(positions, {
  typed: 'words',
  range: 'i = 2; i < CURRENT',
  current: '$PREFIX',
  offer: (values) => (values === undefined ? '_files; ' : `compadd -- ${values}; `),
  find: (entries) => `found=(${entries.map(described).join(' ')})`,
})}
  if ((\${#found})); then _describe andromeda found; else _files; fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _andromeda "$@"; else compdef _andromeda andromeda; fi
`;
}

/** The parts of a completion script that differ between bash and zsh. */
interface Bourne {
  /** The array of typed arguments, and below it the range of its index `i` before the cursor. */
  typed: string;
  range: string;
  current: string;
  offer(values: string | undefined): string;
  find(entries: readonly Candidate[]): string;
}

function bourneCases(positions: readonly Position[], { typed, range, current, offer, find }: Bourne): string {
  const values = positions.flatMap(({ path, flags }) =>
    flags.filter(takesValue).map((flag) => {
      const at = namesOf(flag).map((name) => `'${path}:${name}'`);
      return `    ${at.join('|')}) ${offer(valuesOf(flag))}return ;;`;
    }),
  );
  const cases = (entriesOf: (position: Position) => Candidate[]) =>
    positions
      .filter((position) => entriesOf(position).length > 0)
      .map((position) => `      '${position.path}') ${find(entriesOf(position))} ;;`)
      .join('\n');
  const flagsOf = ({ flags }: Position) =>
    flags.flatMap((flag) => namesOf(flag).map((name) => ({ name, summary: flag.description })));
  return `  for ((${range}; i++)); do
    case "$at/\${${typed}[i]}" in
      ${pathsOf(positions).join('|')}) at="$at/\${${typed}[i]}" ;;
    esac
  done
  case "$at:$previous" in
${values.join('\n')}
  esac
  if [[ ${current} == -* ]]; then
    case "$at" in
${cases(flagsOf)}
    esac
  else
    case "$at" in
${cases(({ commands }) => commands)}
    esac
  fi`;
}

function fishScript(positions: readonly Position[]): string {
  return `# fish completion for andromeda: andromeda completion fish > ~/.config/fish/completions/andromeda.fish
function __andromeda_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        switch "$at/$word"
            case ${pathsOf(positions).join(' ')}
                set at "$at/$word"
        end
    end
    test "$at" = "$argv[1]"
end
${positions.flatMap(fishLines).join('\n')}
`;
}

function fishLines({ path, commands, flags }: Position): string[] {
  const when = `complete -c andromeda -n "__andromeda_at '${path}'"`;
  const entryOf = (flag: Option) => {
    const names = `${flag.short === undefined ? '' : `-s ${flag.short.slice(1)} `}-l ${flag.long?.slice(2)}`;
    if (!takesValue(flag)) return names;
    const values = valuesOf(flag);
    return values === undefined ? `${names} -r` : `${names} -x -a ${quoted(values, "\\'")}`;
  };
  return [
    ...commands.map(({ name, summary }) => `${when} -f -a ${name} -d ${quoted(summary, "\\'")}`),
    ...flags.map((flag) => `${when} ${entryOf(flag)} -d ${quoted(flag.description, "\\'")}`),
  ];
}
