/** Terminal modes as the client encodes them in pty-req (RFC 4254, section 8), turned into arguments for stty. */
import { WireReader } from '../../../lib/ssh/wire.ts';

/** By opcode; `-` where stty has no such word. */
const characters =
  ' intr quit erase kill eof eol eol2 start stop susp - rprnt werase lnext - - - discard'.split(' ');
const firstFlag = 30;
const flags = (
  'ignpar parmrk inpck istrip inlcr igncr icrnl iuclc ixon ixany ixoff imaxbel iutf8 - - - - - - - ' +
  'isig icanon xcase echo echoe echok echonl noflsh tostop iexten echoctl echoke - - - - - - - - ' +
  'opost olcuc onlcr ocrnl onocr onlret'
).split(' ');

const noCharacter = 255;
const firstWithoutArgument = 160;

/** The arguments for one call of stty, empty when the client sent nothing we know. */
export function sttyArguments(modes: Buffer): string[] {
  const reader = new WireReader(modes);
  const settings: string[] = [];
  // Past an opcode of 160 or more no one can tell where the next begins: the RFC says to stop there.
  while (reader.left >= 5) {
    const opcode = reader.byte();
    if (opcode === 0 || opcode >= firstWithoutArgument) break;
    const value = reader.uint32();
    const [character, flag] = [characters[opcode], flags[opcode - firstFlag]].map((word) =>
      word?.replace('-', ''),
    );
    const notation = character && controlNotation(value);
    if (character && notation) settings.push(character, notation);
    if (flag) settings.push(value ? flag : `-${flag}`);
  }
  return settings;
}

/** `^C` rather than a number: a one-digit number means that digit to stty. */
function controlNotation(code: number): string | undefined {
  if (code === noCharacter) return '^-';
  if (code === 127) return '^?';
  if (code < 32) return `^${String.fromCharCode(code + 64)}`;
  return code < 127 ? String.fromCharCode(code) : undefined;
}
