/** Completion for fish 3 and later, with what each command and flag is for. */
import { type Flag, type Position, quoted } from './tree.ts';

export function fishScript(positions: readonly Position[]): string {
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
