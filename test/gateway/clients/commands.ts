/** Many short commands one after the other on one connection, as Ansible's pipelining does it: nothing is lost. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startMaster, withEachNode } from './nodes.ts';

/** As many as one client's process runs, and how many such run side by side: ends of some meet beginnings of others. */
const ROW = 10;
const SIDE = 4;

export function testCommands(count: number): void {
  withEachNode('Ansible', {}, (at) => {
    test('Ansible makes its directory at the `ansible_remote_tmp` of docs/ssh.md', async () => {
      const { lab } = at;
      const [, tmp] = /ansible_remote_tmp: (\S+)`/.exec(readFileSync('docs/ssh.md', 'utf8')) ?? [];
      // As ansible-core 2.17 sends it (plugins/shell, mkdtemp).
      const [dir, made] = [`\`echo ${tmp} \``, `\`echo ${tmp}/ansible-tmp-1 \``];
      const command = `( umask 77 && mkdir -p "${dir}"&& mkdir "${made}" && echo ansible-tmp-1="${made}" ) && sleep 0`;
      // The login nodes here have no homes.
      const inHome = `export HOME=$(mktemp -d); /bin/sh -c '${command}'; echo "$HOME"; rm -r "$HOME"`;
      const { out } = await lab.run('ssh', [...lab.options, 'gateway', inHome]);
      const [line, home] = out.split('\n');
      assert.equal(line, `ansible-tmp-1=${home}/.ansible/tmp/ansible-tmp-1`);
    });

    test(`${count} short commands in a row, a module on standard input to each: output never lost`, async (t) => {
      const { lab } = at;
      const args = [...lab.options, ...(await startMaster(t, lab)), '-T'].join(' ');
      const sessions = lab.gateway.sessions().length;
      const rows = Array.from({ length: count / ROW }, (_, i) => i * ROW);
      const errorsOf = (number: string) => {
        const file = join(lab.dir, `err${number}`);
        return existsSync(file) ? readFileSync(file, 'utf8') : '';
      };
      const worker = async () => {
        for (let from = rows.shift(); from !== undefined; from = rows.shift()) {
          const script = `for i in $(seq ${from} ${from + ROW - 1}); do
            printf 'seq 1 200; echo "end %s" >&2; exit %s\\n' $i $((i % 200)) |
              ssh ${args} gateway /bin/sh > out$i 2> err$i
            echo "$i $?"; done`;
          const { out } = await lab.run('bash', ['-c', script]);
          const expected = Array.from({ length: ROW }, (_, i) => `${from + i} ${(from + i) % 200}\n`);
          const other = out.split('\n').find((line, i) => `${line}\n` !== expected[i]) ?? '';
          assert.equal(
            out,
            expected.join(''),
            `${other}: ${errorsOf(other.split(' ')[0] ?? '')}; all: ${out}`,
          );
        }
      };
      await Promise.all(Array.from({ length: SIDE }, worker));
      const numbers = Array.from({ length: 200 }, (_, i) => `${i + 1}\n`).join('');
      for (let i = 0; i < count; i += 1) {
        const text = (name: string) => readFileSync(join(lab.dir, `${name}${i}`), 'utf8');
        assert.equal(text('out'), numbers);
        assert.equal(text('err'), `end ${i}\n`);
      }
      assert.equal(lab.gateway.sessions().length, sessions);
    });
  });
}
