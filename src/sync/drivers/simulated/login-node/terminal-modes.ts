/** Terminal modes as the client encodes them in pty-req (RFC 4254, section 8), turned into arguments for stty. */
import { WireReader } from '../../../../ssh/wire.ts';

const characters: Record<number, string> = {
  1: 'intr',
  2: 'quit',
  3: 'erase',
  4: 'kill',
  5: 'eof',
  6: 'eol',
  7: 'eol2',
  8: 'start',
  9: 'stop',
  10: 'susp',
  12: 'rprnt',
  13: 'werase',
  14: 'lnext',
  18: 'discard',
};

const flags: Record<number, string> = {
  30: 'ignpar',
  31: 'parmrk',
  32: 'inpck',
  33: 'istrip',
  34: 'inlcr',
  35: 'igncr',
  36: 'icrnl',
  37: 'iuclc',
  38: 'ixon',
  39: 'ixany',
  40: 'ixoff',
  41: 'imaxbel',
  42: 'iutf8',
  50: 'isig',
  51: 'icanon',
  52: 'xcase',
  53: 'echo',
  54: 'echoe',
  55: 'echok',
  56: 'echonl',
  57: 'noflsh',
  58: 'tostop',
  59: 'iexten',
  60: 'echoctl',
  61: 'echoke',
  70: 'opost',
  71: 'olcuc',
  72: 'onlcr',
  73: 'ocrnl',
  74: 'onocr',
  75: 'onlret',
};

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
    const character = characters[opcode];
    const flag = flags[opcode];
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
