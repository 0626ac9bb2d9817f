/** `andromeda completion`: what can be typed next, for a shell, made from the program's own commands. */
import type { Command, Option } from 'commander';
import { type Outcome, usage } from '../exit.ts';
import { print } from '../output.ts';

function zshScript(positions: readonly Position[]): string {
  const paths = positions.map(({ path }) => path).filter((path) => path !== '');
  return `#compdef andromeda
# zsh completion for andromeda: source <(andromeda completion zsh), or put it into $fpath as _andromeda
_andromeda() {
  local at='' i previous=\${words[CURRENT-1]}
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    case "$at/\${words[i]}" in
      ${paths.join('|')}) at="$at/\${words[i]}" ;;
    esac
  done
  case "$at:$previous" in
${positions.flatMap(zshValueCases).join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    case "$at" in
${positions.map((position) => `      ${quotedPath(position)}) found=(${zshFlagEntries(position)}) ;;`).join('\n')}
    esac
  else
    case "$at" in
${positions
  .filter(({ commands }) => commands.length > 0)
  .map((position) => `      ${quotedPath(position)}) found=(${commandEntries(position)}) ;;`)
  .join('\n')}
    esac
  fi
  if ((\${#found})); then _describe andromeda found; else _files; fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _andromeda "$@"; else compdef _andromeda andromeda; fi
`;
}

const zshQuote = "'\\''";

function quotedPath({ path }: Position): string {
  return quoted(path, zshQuote);
}

function described(name: string, summary: string): string {
  return quoted(`${name.replaceAll(':', '\\:')}:${summary}`, zshQuote);
}

function commandEntries({ commands }: Position): string {
  return commands.map(({ name, summary }) => described(name, summary)).join(' ');
}

function zshFlagEntries({ flags }: Position): string {
  return flags.flatMap((flag) => namesOf(flag).map((name) => described(name, flag.summary))).join(' ');
}

function zshValueCases({ path, flags }: Position): string[] {
  return flags
    .filter(({ takesValue }) => takesValue)
    .map((flag) => {
      const at = namesOf(flag).map((name) => quoted(`${path}:${name}`, zshQuote));
      const offer = flag.values.length === 0 ? '_files' : `compadd -- ${flag.values.join(' ')}`;
      return `    ${at.join('|')}) ${offer}; return ;;`;
    });
}

function fishScript(positions: readonly Position[]): string {
  const paths = positions.map(({ path }) => path).filter((path) => path !== '');
  return `# fish completion for andromeda: andromeda completion fish > ~/.config/fish/completions/andromeda.fish
function __andromeda_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        switch "$at/$word"
            case ${paths.join(' ')}
                set at "$at/$word"
        end
    end
    test "$at" = "$argv[1]"
end
${positions.flatMap(lines).join('\n')}
`;
}

const quote = "\\'";

function lines({ path, commands, flags }: Position): string[] {
  const when = `complete -c andromeda -n "__andromeda_at '${path}'"`;
  return [
    ...commands.map(({ name, summary }) => `${when} -f -a ${name} -d ${quoted(summary, quote)}`),
    ...flags.map((flag) => `${when} ${flagEntries(flag)} -d ${quoted(flag.summary, quote)}`),
  ];
}

function flagEntries({ short, long, takesValue, values }: Flag): string {
  const names = `${short === undefined ? '' : `-s ${short.slice(1)} `}-l ${long.slice(2)}`;
  if (!takesValue) return names;
  return values.length === 0 ? `${names} -r` : `${names} -x -a ${quoted(values.join(' '), quote)}`;
}

export interface Position {
  /** The commands typed so far, each behind a slash; empty at the program itself. */
  path: string;
  commands: { name: string; summary: string }[];
  flags: Flag[];
}

export interface Flag {
  /** `-o`, where there is one. */
  short?: string;
  /** `--output` */
  long: string;
  summary: string;
  /** Whether a value follows. */
  takesValue: boolean;
  /** The values there are, where they are known. */
  values: string[];
}

/** Every position, the outer ones first. */
function treeOf(program: Command, path = ''): Position[] {
  const position: Position = {
    path,
    commands: program.commands.map((one) => ({ name: one.name(), summary: one.description() })),
    flags: [...program.options.filter(({ hidden }) => !hidden).map(flagOf), help],
  };
  return [position, ...program.commands.flatMap((one) => treeOf(one, `${path}/${one.name()}`))];
}

const help: Flag = { short: '-h', long: '--help', summary: 'explain it', takesValue: false, values: [] };

function flagOf({ short, long, description, required, optional, argChoices }: Option): Flag {
  return {
    ...(short !== undefined && { short }),
    long: long ?? short ?? '',
    summary: description,
    takesValue: required || optional,
    values: argChoices ?? [],
  };
}

/** The names under which a flag is typed. */
export function namesOf({ short, long }: Flag): string[] {
  return short === undefined ? [long] : [short, long];
}

/** For a shell, text in single quotes; fish and the Bourne shells differ in how a quote gets into it. */
export function quoted(text: string, quote: string): string {
  return `'${text.replaceAll("'", quote)}'`;
}

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

function bashScript(positions: readonly Position[]): string {
  const paths = positions.map(({ path }) => path).filter((path) => path !== '');
  return `# bash completion for andromeda: source <(andromeda completion bash)
_andromeda() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} at='' words='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at/\${COMP_WORDS[i]}" in
      ${paths.join('|')}) at="$at/\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at:$previous" in
${valueCases(positions)}
  esac
  if [[ $current == -* ]]; then
    case "$at" in
${positions.map(({ path, flags }) => `      '${path}') words='${flags.flatMap(namesOf).join(' ')}' ;;`).join('\n')}
    esac
  else
    case "$at" in
${positions
  .filter(({ commands }) => commands.length > 0)
  .map(({ path, commands }) => `      '${path}') words='${commands.map(({ name }) => name).join(' ')}' ;;`)
  .join('\n')}
    esac
  fi
  [[ -z $words ]] || COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _andromeda andromeda
`;
}

/** What follows a flag: its values, or free text, which is not completed. */
function valueCases(positions: readonly Position[]): string {
  const cases = positions.flatMap(({ path, flags }) =>
    flags
      .filter(({ takesValue }) => takesValue)
      .map((flag) => {
        const at = namesOf(flag).map((name) => `'${path}:${name}'`);
        const reply =
          flag.values.length === 0
            ? ''
            : `COMPREPLY=($(compgen -W '${flag.values.join(' ')}' -- "$current")); `;
        return `    ${at.join('|')}) ${reply}return ;;`;
      }),
  );
  return cases.join('\n');
}
