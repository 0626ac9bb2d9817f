import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { configuration } from '../../src/sync/slurm/script/configuration.ts';
import { prelude } from '../../src/sync/slurm/script/prelude.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { mulberry } from '../support/random.ts';

const noSlurm = existsSync('/usr/bin/sacctmgr')
  ? false
  : 'sacctmgr, which says how Slurm reads a file, is not installed';

/** What sacctmgr prints of a slurm.conf, by key; all of these come from the file alone. */
const printed = {
  MessageTimeout: (value: string) => `${value} sec`,
  TCPTimeout: (value: string) => `${value} sec`,
  AccountingStorageParameters: (value: string) => value,
};

test('slurm.conf is read as Slurm reads it, and our part counts in it, whatever a site writes', {
  skip: noSlurm,
}, (t) => {
  using directory = temporaryDirectory();
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`seed ${seed} (SEED=${seed} runs it again)`);
  const random = mulberry(seed);
  const below = (count: number) => Math.floor(random() * count);
  const oneOf = <T>(...all: T[]): T => all[below(all.length)] as T;
  const end = () => oneOf('\n', '\n', '\r\n', ' \r\n', '\t\n', ' # a note\n', '# a note \\\n');
  // Where a line may be broken, it may go on.
  const gap = (least = '') =>
    oneOf(least, `${least} `, `${least}\\\n`, `${least} \\ \n `, `${least}\\\r\n\t`, `${least}\\ # more\n`);
  const setting = () => {
    const key = oneOf(...Object.keys(printed));
    const value =
      key === 'AccountingStorageParameters'
        ? oneOf('a=b', '"a b"', 'x\\#y', 'p\\\\q', '"', "it's")
        : `${11 + below(88)}`;
    const named = oneOf(key, key.toLowerCase(), key.toUpperCase(), `${key.slice(0, 4)}\\\n${key.slice(4)}`);
    return value === '"' ? '' : `${oneOf('', ' ', '\t')}${named}${gap()}=${gap()}${value}${end()}`;
  };
  const other = () =>
    oneOf(
      '#',
      '# MessageTimeout=1',
      ' ',
      '',
      '# an old one \\',
      'NodeName=n[2-3] CPUs=1 \\\n State=UNKNOWN',
      'Include more.conf ',
      'Include "more.conf" ',
    ) + end();
  // The last line may go on with none to come.
  const last = () => oneOf('', '', 'MessageTimeout=38\\', 'TCPTimeout=39\\\n', 'tcptimeout \\\n = 40 \\');
  for (let round = 0; round < 20; round++) {
    const lines = Array.from({ length: 8 }, () => (below(2) === 0 ? setting() : other()));
    const site = `ClusterName=lab${end()}SlurmctldHost=x\nSlurmUser=root\nAccountingStorageType=accounting_storage/slurmdbd\nAccountingStoragePort=1\nNodeName=n1\nPartitionName=p Nodes=n1\n${lines.join('')}${last()}`;
    const files = {
      'slurm.conf': site,
      'more.conf': (setting() || '#\n') + last(),
      '"more.conf"': (setting() || '#\n') + last(),
      block: oneOf(
        'MessageTimeout=77\nPartitionName=ours \\\n  Nodes=n1\n',
        'PartitionName=ours \\\n  Nodes=n1\nMessageTimeout=77\\',
      ),
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory.path, name), text);
    const where = `seed ${seed}, round ${round}:\n${JSON.stringify(site)} with ${JSON.stringify(files['more.conf'])}`;
    assert.deepEqual(ours(directory.path), slurms(directory.path), where);
    const rendered = sh(directory.path, 'render "$conf" "$etc/block" keys');
    writeFileSync(join(directory.path, 'slurm.conf'), rendered);
    const now = slurms(directory.path);
    assert.deepEqual(ours(directory.path), now, where);
    assert.equal(now['MessageTimeout'], '77 sec', where);
    const again = sh(directory.path, ': > "$etc/none"; render "$conf" "$etc/none" keys');
    assert.equal(again, site.replace(/([^\n])$/, '$1\n'), where);
  }
});

/** As our scripts read them. */
function ours(etc: string): Record<string, string> {
  const keys = Object.entries(printed);
  const values = sh(etc, keys.map(([key]) => `printf '%s\\n' "$(conf_value ${key})"`).join('; ')).split('\n');
  return Object.fromEntries(
    keys.flatMap(([key, print], at) => (values[at] ? [[key, print(values[at])]] : [])),
  );
}

/** As Slurm does. A setting that the file does not have is left out. */
function slurms(etc: string): Record<string, string> {
  const env = { PATH: process.env['PATH'], SLURM_CONF: join(etc, 'slurm.conf') };
  const { stdout, stderr } = spawnSync('sacctmgr', ['show', 'configuration'], { env, encoding: 'utf8' });
  assert.match(
    stdout,
    /Configuration data/,
    stderr + JSON.stringify(readFileSync(join(etc, 'slurm.conf'), 'utf8')),
  );
  const found: Record<string, string> = {};
  for (const key of Object.keys(printed)) {
    const value = new RegExp(`^${key} *= (.*)$`, 'm').exec(stdout)?.[1];
    const isDefault =
      { MessageTimeout: '10 sec', TCPTimeout: '2 sec', AccountingStorageParameters: '(null)' }[key] === value;
    if (value !== undefined && !isDefault) found[key] = value;
  }
  return found;
}

function sh(etc: string, command: string): string {
  const script = `${prelude}${configuration}\netc=$1 conf=$1/slurm.conf\n${command}`;
  const { stdout, stderr } = spawnSync('sh', ['-c', script, 'sh', etc], { encoding: 'utf8' });
  assert.equal(stderr, '');
  return stdout;
}
