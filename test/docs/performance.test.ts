/** docs/performance.md has the figures of the last release, which the bench compares with. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { findWorse, namesOf, parseLastRelease, readLastRelease } from '../../scripts/bench/last-release.ts';

const row = (name: string, ratio: number, reference = 'x') => ({
  row: name,
  ours: '',
  reference,
  ratio,
  aim: '',
});

test('the figures in docs/performance.md are read, of a release that the changelog names', () => {
  const { version, figures } = readLastRelease();
  assert.ok(
    readFileSync(new URL('../../CHANGELOG.md', import.meta.url), 'utf8').includes(`\n## ${version}\n`),
  );
  assert.ok(figures.size > 10);
  assert.equal(figures.get('GET /me')?.better, 'more');
});

test('a line that cannot be compared with is refused', () => {
  const page = (line: string) => `## Release 1\n| Row |\n| - |\n${line}\n`;
  assert.equal(parseLastRelease(page('| a | 0.5 | 0.4–0.6 | more |')).figures.size, 1);
  for (const line of [
    '| a | 0.5 | about 0.5 | more |',
    '| a | 0.5 | 0.6–0.7 | more |',
    '| a | 0.5 | 0.4–0.6 | |',
  ])
    assert.throws(() => parseLastRelease(page(line)), /cannot be compared with/);
  assert.throws(() => parseLastRelease('# Performance\n'), /names no release/);
});

test('a row that fell by a tenth, beyond its spread, is named, whichever way is good', () => {
  const last = parseLastRelease(
    [
      '## Release 1.2.3',
      '| Row | Ratio | Spread | Better |',
      '| - | - | - | - |',
      '| fast * | 0.5 | 0.48–0.52 | more |',
      '| fast · processor time | 2.0 | 1.5–2.3 | less |',
      '',
    ].join('\n'),
  );
  const found = (rate: number, time: number) =>
    findWorse([row('fast', rate), row('  processor time', time), row('new', 9)], last);
  assert.deepEqual(found(0.46, 2.29), []);
  assert.deepEqual(found(2, 1), []);
  assert.deepEqual(found(0.45, 2.4), [
    'worse than 1.2.3: fast: 0.45, was 0.5 (0.48–0.52)',
    'worse than 1.2.3: fast · processor time: 2.40, was 2 (1.5–2.3)',
  ]);
});

test('a row without a name of its own is called by the one above it', () => {
  assert.deepEqual(namesOf([row('copy down', 1), row('', 1, '9 MB/s  ssh'), row('  processor time', 1)]), [
    'copy down',
    'copy down · ssh',
    'copy down · processor time',
  ]);
});
