import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quantity } from '../../src/domain/kubernetes/report.ts';

const table: [unknown, number | undefined][] = [
  ['16', 16],
  ['15500m', 15.5],
  ['64000Mi', 64000 * 2 ** 20],
  ['10Ti', 10 * 2 ** 40],
  ['1.5Gi', 1.5 * 2 ** 30],
  ['2k', 2000],
  ['1e3', 1000],
  ['12E', 12e18],
  ['1698756925985', 1_698_756_925_985],
  [107_374_182_400, 107_374_182_400],
  ['', undefined],
  ['many', undefined],
  ['10TiB', undefined],
  [undefined, undefined],
  [{}, undefined],
];
for (const [text, number] of table) {
  test(`the quantity ${JSON.stringify(text)} is ${number}`, () => assert.equal(quantity(text), number));
}
