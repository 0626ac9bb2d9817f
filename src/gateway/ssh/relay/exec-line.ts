/**
 * The commands that run a person's login shell on a login node ("SSH gateway behaviour", Shell). sshd hands an `exec`
 * line to the shell that the account has in its passwd file, whatever that is, so a line is one command that sh, csh
 * and fish all read alike: `exec /bin/sh -c '<script>' <name> <arguments>`, every part in single quotes that hold no
 * newline, no backslash before a quote or a backslash, and no `!`.
 * Lines are latin1 strings: one character, one byte, so a command that is not UTF-8 comes through unharmed.
 */
import { isUtf8 } from 'node:buffer';

const choose = [
  'if [ -f "$s" ] && [ -x "$s" ]; then :;',
  'elif [ -x /bin/bash ]; then',
  String.raw`printf "andromeda: your login shell %s is missing or not executable here, using /bin/bash\n" "$s" >&2;`,
  's=/bin/bash;',
  String.raw`else printf "andromeda: neither your login shell %s nor /bin/bash can be run here\n" "$s" >&2; exit 127; fi;`,
  'SHELL=$s; export SHELL;',
].join(' ');

/** The line that runs `shell` as an interactive login shell, or /bin/bash with a warning where it cannot. */
export function loginShellLine(shell: string): string {
  const path = argument('s', 1, latin1(shell));
  return `exec /bin/sh -c '${path.read} ${choose} exec "$s" -l' andromeda ${path.quoted}`;
}

/** The kernel's limit for one argument, MAX_ARG_STRLEN without the NUL: a login node hands a line to the shell as one. */
const longestArgument = 131_071;

/** The line that runs `command` (latin1) as sshd would, with `shell -c`, and with the same fallback. */
export function commandLine(shell: string, command: string): string {
  const path = argument('s', 1, latin1(shell));
  const text = argument('c', 2, command);
  const script = `${path.read} ${text.read} ${choose} exec "$s" -c "$c"`;
  const line = `exec /bin/sh -c '${script}' andromeda ${path.quoted} ${text.quoted}`;
  if (line.length <= longestArgument || command.length > longestArgument || !isText(command)) return line;
  // No wrapper fits around a command so near the limit. It is sent unchanged, for the shell that the account has.
  return command;
}

/** Sent instead of a line that the login node would reject: OpenSSH's client shows nothing for a refused `exec`. */
const tooLongLine =
  'exec /bin/sh -c \'echo "andromeda: the command is too long for this login node" >&2; exit 126\'';

/** The channel request that carries the first pieces of a line to the embedded login node; `exec` carries the last. */
export const execPart = 'exec-part@andromeda';

/**
 * Splits a line by the longest message that the login node takes. OpenSSH takes messages of 256 KiB. Others may end
 * the connection above the size of RFC 4253, section 6.1. So does the embedded one, but it joins pieces.
 */
export function linePieces(line: string, software: string): string[] {
  const isEmbedded = software === 'OpenSSH_Andromeda_LoginNode';
  const longest = isEmbedded || /^OpenSSH_\d/.test(software) ? longestArgument : portableMessage;
  const whole = line.length <= longest ? line : tooLongLine;
  if (!isEmbedded) return [whole];
  const count = Math.max(1, Math.ceil(whole.length / portableMessage));
  return Array.from({ length: count }, (_, n) => whole.slice(n * portableMessage, (n + 1) * portableMessage));
}

const portableMessage = 32 * 1024;

/** Positional argument `position`, read into `name`. Characters that single quotes cannot carry in every shell are sent in octal. */
function argument(name: string, position: number, value: string) {
  // Some shells and login nodes do not pass on bytes that are not UTF-8.
  const troubles = isText(value) ? /[\\!\n\r]/g : /[\\!\n\r\x80-\xff]/g;
  if (value.search(troubles) === -1) return { read: `${name}=$${position};`, quoted: quote(value) };
  const octal = value.replace(troubles, (c) => `\\0${c.charCodeAt(0).toString(8).padStart(3, '0')}`);
  // The underscore keeps trailing newlines, which $( ) would drop.
  return {
    read: `${name}=$(printf "%b_" "$${position}"); ${name}=\${${name}%_};`,
    quoted: quote(octal),
  };
}

const quote = (value: string) => `'${value.replaceAll("'", `'\\''`)}'`;

const isText = (value: string) => isUtf8(Buffer.from(value, 'latin1'));

const latin1 = (text: string) => Buffer.from(text, 'utf8').toString('latin1');
