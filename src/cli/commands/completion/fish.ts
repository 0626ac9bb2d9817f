/** Completion for fish 3 and later, with what each command and flag is for. */
import { type Flag, type Place, quoted } from './tree.ts';

export function fishScript(places: readonly Place[]): string {
  const paths = places.map(({ path }) => path).filter((path) => path !== '');
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
${places.flatMap(lines).join('\n')}
`;
}

const quote = "\\'";

function lines({ path, commands, flags }: Place): string[] {
  const when = `complete -c andromeda -n "__andromeda_at '${path}'"`;
  return [
    ...commands.map(({ name, summary }) => `${when} -f -a ${name} -d ${quoted(summary, quote)}`),
    ...flags.map((flag) => `${when} ${flagWords(flag)} -d ${quoted(flag.summary, quote)}`),
  ];
}

function flagWords({ short, long, takesValue, values }: Flag): string {
  const names = `${short === undefined ? '' : `-s ${short.slice(1)} `}-l ${long.slice(2)}`;
  if (!takesValue) return names;
  return values.length === 0 ? `${names} -r` : `${names} -x -a ${quoted(values.join(' '), quote)}`;
}
