/** Completion for zsh, with what each command and flag is for. */
import { namesOf, type Place, quoted } from './tree.ts';

export function zshScript(places: readonly Place[]): string {
  const paths = places.map(({ path }) => path).filter((path) => path !== '');
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
${places.flatMap(valueCases).join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    case "$at" in
${places.map((place) => `      ${quotedPath(place)}) found=(${flagWords(place)}) ;;`).join('\n')}
    esac
  else
    case "$at" in
${places
  .filter(({ commands }) => commands.length > 0)
  .map((place) => `      ${quotedPath(place)}) found=(${commandWords(place)}) ;;`)
  .join('\n')}
    esac
  fi
  if ((\${#found})); then _describe andromeda found; else _files; fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _andromeda "$@"; else compdef _andromeda andromeda; fi
`;
}

const quote = "'\\''";

function quotedPath({ path }: Place): string {
  return quoted(path, quote);
}

function described(name: string, summary: string): string {
  return quoted(`${name.replaceAll(':', '\\:')}:${summary}`, quote);
}

function commandWords({ commands }: Place): string {
  return commands.map(({ name, summary }) => described(name, summary)).join(' ');
}

function flagWords({ flags }: Place): string {
  return flags.flatMap((flag) => namesOf(flag).map((name) => described(name, flag.summary))).join(' ');
}

function valueCases({ path, flags }: Place): string[] {
  return flags
    .filter(({ takesValue }) => takesValue)
    .map((flag) => {
      const at = namesOf(flag).map((name) => quoted(`${path}:${name}`, quote));
      const offer = flag.values.length === 0 ? '_files' : `compadd -- ${flag.values.join(' ')}`;
      return `    ${at.join('|')}) ${offer}; return ;;`;
    });
}
