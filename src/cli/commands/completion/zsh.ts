/** Completion for zsh, with what each command and flag is for. */
import { namesOf, type Position, quoted } from './tree.ts';

export function zshScript(positions: readonly Position[]): string {
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
${positions.flatMap(valueCases).join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    case "$at" in
${positions.map((position) => `      ${quotedPath(position)}) found=(${flagEntries(position)}) ;;`).join('\n')}
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

const quote = "'\\''";

function quotedPath({ path }: Position): string {
  return quoted(path, quote);
}

function described(name: string, summary: string): string {
  return quoted(`${name.replaceAll(':', '\\:')}:${summary}`, quote);
}

function commandEntries({ commands }: Position): string {
  return commands.map(({ name, summary }) => described(name, summary)).join(' ');
}

function flagEntries({ flags }: Position): string {
  return flags.flatMap((flag) => namesOf(flag).map((name) => described(name, flag.summary))).join(' ');
}

function valueCases({ path, flags }: Position): string[] {
  return flags
    .filter(({ takesValue }) => takesValue)
    .map((flag) => {
      const at = namesOf(flag).map((name) => quoted(`${path}:${name}`, quote));
      const offer = flag.values.length === 0 ? '_files' : `compadd -- ${flag.values.join(' ')}`;
      return `    ${at.join('|')}) ${offer}; return ;;`;
    });
}
