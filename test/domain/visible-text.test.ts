import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escapeControls, visibleLine, visibleName } from '../../src/domain/text.ts';

const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

const unsafe: Record<string, number[]> = {
  'C0, but for tab and newline': [...range(0x00, 0x08), ...range(0x0b, 0x1f)],
  'DEL and C1': range(0x7f, 0x9f),
  'bidirectional controls': [0x061c, 0x200e, 0x200f, ...range(0x202a, 0x202e), ...range(0x2066, 0x2069)],
  'zero-width characters': [0x200b, 0x200c, 0x200d, 0x2060, 0xfeff, 0x180e, 0xad],
  'line separators': [0x2028, 0x2029],
  'lone surrogates': [0xd800, 0xdfff],
  'tags, which hide a text in a text': [0xe0001, 0xe0041, 0xe007f],
};

for (const [what, points] of Object.entries(unsafe)) {
  test(`escaped: ${what}`, () => {
    for (const point of points) {
      const character = String.fromCodePoint(point);
      const units = character
        .split('')
        .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
      assert.equal(escapeControls(`a${character}b`), `a${units.join('')}b`);
      // Whatever JSON leaves as it is, is escaped so that it still reads the same.
      const json = escapeControls(JSON.stringify({ text: character }));
      assert.doesNotMatch(json, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
      assert.deepEqual(JSON.parse(json), { text: character });
    }
  });
}

test('text that people write stays as it is', () => {
  for (const text of ['Zoë Ångström', '王小明', 'محمد', '🙂 ok', 'a\tb\nc', 'C:\\users', "d'Arc-Ōe"])
    assert.equal(escapeControls(text), text);
});

const lines: [string, string, string][] = [
  ['line breaks and tabs are one space', '  a \r\n\t b\u0085c\u2028d ', 'a b c d'],
  [
    'a message with an escape sequence does not drive the terminal',
    '\u001b[2Jgone\u0007',
    '\\u001b[2Jgone\\u0007',
  ],
  ['a name cannot change the order of what follows', 'ada\u202e moc.live', 'ada\\u202e moc.live'],
];
for (const [why, text, expected] of lines)
  test(`on one line: ${why}`, () => assert.equal(visibleLine(text), expected));

const names: [string, string, string][] = [
  ['80 characters are shown whole', 'n'.repeat(80), 'n'.repeat(80)],
  ['81 are cut to 80', 'n'.repeat(81), `${'n'.repeat(79)}…`],
  ['a character of two units counts once', '🙂'.repeat(81), `${'🙂'.repeat(79)}…`],
  ['megabytes are cut', 'n'.repeat(5_000_000), `${'n'.repeat(79)}…`],
  ['space counts before it is taken away', ' '.repeat(5_000_000), '…'],
  ['an escape counts as it is shown', '\u202e'.repeat(80), `${'\\u202e'.repeat(13)}…`],
];
for (const [why, name, expected] of names)
  test(`a name: ${why}`, () => assert.equal(visibleName(name), expected));
