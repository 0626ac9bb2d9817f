/** Completion for bash 3.2 and later. Where nothing is known, bash completes file names. */
import { namesOf, type Position } from './tree.ts';

export function bashScript(positions: readonly Position[]): string {
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

/** What follows a flag: its values, or something nobody but the person knows. */
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
