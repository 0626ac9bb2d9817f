import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ManifestAccount } from '../../src/domain/access/manifest.ts';
import type { SlurmConfiguration } from '../../src/domain/slurm/configuration.ts';
import { restartPlan } from '../../src/domain/slurm/restart-plan.ts';
import { ada, bob, keyless } from '../support/access.ts';

const order = ['login', 'controller', 'accounting', 'compute'];

type Row = [string, ManifestAccount[], ManifestAccount[], string[], string[]];
const restarting: Row[] = [
  ['a person with an active key gains SSH access (1a)', [ada], [ada, bob], ['bob'], []],
  ['a person with an active key loses their last grant of it (1a)', [ada, bob], [ada], [], ['bob']],
  ['a person with SSH access registers their first active key (1b)', [ada, keyless], [ada, bob], ['bob'], []],
  ['a person with SSH access revokes their last active key (1b)', [ada, bob], [ada, keyless], [], ['bob']],
  ['one comes and one goes', [ada], [bob], ['bob'], ['ada']],
];
for (const [when, before, after, added, removed] of restarting) {
  test(`restarts login nodes, controller and accounting, then compute nodes, when ${when}`, () => {
    assert.deepEqual(restartPlan(before, after), { added, removed, restarts: order });
  });
}

const quiet: [string, ManifestAccount[], ManifestAccount[]][] = [
  ['nothing changed', [ada, bob], [bob, ada]],
  [
    'a key is added while another is active',
    [ada],
    [{ ...ada, keySetGeneration: 2, keyFingerprints: ['a', 'b'] }],
  ],
  [
    'a key is revoked while another is active',
    [{ ...ada, keyFingerprints: ['a', 'b'] }],
    [{ ...ada, keySetGeneration: 2 }],
  ],
  ['a login shell changes', [ada], [{ ...ada, shell: '/bin/zsh' }]],
  ['someone without a key gains SSH access', [ada], [ada, keyless]],
  ['someone without a key loses SSH access', [ada, keyless], [ada]],
  ['the list is empty as it was', [], []],
];
for (const [when, before, after] of quiet) {
  test(`restarts nothing when ${when}`, () => {
    assert.deepEqual(restartPlan(before, after), { added: [], removed: [], restarts: [] });
  });
}

const configured = (before: SlurmConfiguration, after: SlurmConfiguration, accounts = [ada]) =>
  restartPlan([ada], accounts, { before, after }).restarts;

test('another Slurm configuration restarts login nodes and controller, and no compute node', () => {
  const texts = ['slurmExtraConfig', 'slurmPartitions', 'cgroupExtraConfig', 'gresConf', 'loginS6Packages'];
  for (const after of [
    ...texts.map((field): SlurmConfiguration => ({ [field]: 'a' })),
    ...['prolog', 'epilog', 'controllerEtc'].map((field): SlurmConfiguration => ({ [field]: { a: '#!' } })),
  ]) {
    assert.deepEqual(configured({}, after), ['login', 'controller'], Object.keys(after)[0]);
    assert.deepEqual(configured(after, {}), ['login', 'controller'], 'clearing a field is a change');
  }
});

test('another computeS6Packages restarts every compute node too', () => {
  assert.deepEqual(configured({}, { computeS6Packages: 'a' }), ['login', 'controller', 'compute']);
  assert.deepEqual(configured({ computeS6Packages: 'a' }, { computeS6Packages: 'b' }), [
    'login',
    'controller',
    'compute',
  ]);
});

test('a configuration that means the same restarts nothing', () => {
  assert.deepEqual(configured({}, {}), []);
  assert.deepEqual(configured({ prolog: { a: '#!', b: '#!' } }, { prolog: { b: '#!', a: '#!' } }), []);
});

test('accounts and configuration together restart what either restarts', () => {
  assert.deepEqual(configured({}, { slurmExtraConfig: 'a' }, [ada, bob]), order);
});
