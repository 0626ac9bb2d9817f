/** docs/configuration.md names every limit of the gateway, with the default that it has. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultLimits } from '../../src/gateway/ssh/limits.ts';
import { gatewayLimitsSchema } from '../../src/service/config/gateway-limits.ts';
import { readPage } from './pages.ts';

const { text } = readPage('configuration.md', 'The SSH gateway');

/** "`a`, `b`: … Default: 1, 2." as [a, 1] and [b, 2]. */
function defaultsOf(item: string): [string, number][] {
  const [names = ''] = item.split(': ');
  const [, values = ''] = /Default: ([\d., ]+)\.$/.exec(item) ?? [];
  return names
    .split(', ')
    .map((name, index) => [name.replaceAll('`', ''), Number(values.split(', ')[index])]);
}

test('the limits on the page are those of the schema, with their defaults', () => {
  const [, list = ''] = text.split('Under `gateway: limits:`\n\n');
  const [items = ''] = list.split('\n\n');
  const shown = items
    .replaceAll('\n  ', ' ')
    .split('\n')
    .map((line) => line.replace('- ', ''));
  const inSettings = Object.entries(defaultLimits).map(([name, value]): [string, number] =>
    name.endsWith('Ms') ? [name.replace(/Ms$/, 'Seconds'), value / 1000] : [name, value],
  );
  const settings = Object.keys(gatewayLimitsSchema['properties'] as object);
  assert.deepEqual(
    Object.fromEntries(shown.flatMap(defaultsOf)),
    Object.fromEntries(inSettings.filter(([name]) => settings.includes(name))),
  );
  assert.equal(shown.flatMap(defaultsOf).length, settings.length);
});
