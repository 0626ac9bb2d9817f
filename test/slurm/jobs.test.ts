/** Logins into a running job on a real Slurm cluster: `<cluster>.<user>+job`. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { expandHosts } from '../../src/sync/slurm/facts.ts';
import { alpha, eventually } from '../support/app.ts';
import { limit } from '../support/limit.ts';
import { freePorts } from '../support/ports.ts';
import { throughSocks } from '../support/socks.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { noSlurm, startSlurmLab } from './lab.ts';
import { permit, startService } from './service.ts';

test('a login into a job', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ homes: 'shared' });
  // Most of its time goes into waiting for Slurm, and looking at hosts meanwhile takes processors.
  await using service = await startService(lab, { rollout: 'live' }, { sync: { intervalSeconds: 10 } });
  using abe = await sshPerson(service, 'abe');
  /** The first name that a client is given counts, and is read when it starts. */
  const named = <T>(suffix: string, act: () => T): T => {
    const at = abe.options.indexOf('-l') + 1;
    abe.options[at] = `${alpha}.abe${suffix}`;
    const result = act();
    abe.options[at] = `${alpha}.abe`;
    return result;
  };
  const into = (suffix: string, ...args: string[]) => named(suffix, () => abe.ssh(args));
  const submit = async (options: string, command = 'sleep 900') => {
    const { out, err } = await abe.ssh([abe.target, `sbatch ${options} --wrap '${command}'`]);
    const [, id] = /Submitted batch job (\d+)/.exec(out) ?? [];
    assert.ok(id, out + err);
    await eventually(
      async () => (await abe.ssh([abe.target, `squeue -h -j ${id} -o %T`])).out.split('\n')[0],
      (state) => state === 'RUNNING',
    );
    return id;
  };

  const running = async () =>
    (await abe.ssh([abe.target, 'squeue -h --me -t RUNNING -o %i'])).out.split('\n').filter(Boolean);

  await t.test('without one it is refused, and says why', async () => {
    const { status, err } = await into('+job', abe.target, 'true');
    assert.equal(status, 255);
    assert.match(err, /You have no job that runs now\./);
  });

  await t.test('a command runs on its node, with its devices and environment', async () => {
    const id = await submit('--gres=gpu:2 -w a2 -J train');
    const ran = await into(
      '+job',
      abe.target,
      'hostname; id -un; echo $SLURM_JOB_ID $CUDA_VISIBLE_DEVICES; exit 7',
    );
    assert.deepEqual([ran.status, ran.out, ran.err], [7, `a2\nabe\n${id} 0,1\n`, '']);
    const tty = await into('+job', '-tt', abe.target, 'tty; echo done');
    assert.match(tty.out, /^\/dev\/pts\/\d+\r\ndone\r\n$/);
  });

  await t.test('the youngest is entered, another by its ID, and a refusal lists them all', async () => {
    const [train] = await running();
    const young = await submit('-w a1 -J eval');
    const where = 'echo $SLURM_JOB_ID';
    assert.equal((await into('+job', abe.target, where)).out, `${young}\n`);
    assert.equal((await into(`+${train}`, abe.target, where)).out, `${train}\n`);
    const { status, err } = await into('+99999', abe.target, where);
    assert.equal(status, 255);
    assert.match(err, /You have no job 99999 that runs now\./);
    assert.match(err, new RegExp(`Your jobs that run now:\\s+${young} on a1: eval\\s+${train} on a2: train`));
    for (const odd of ['+', '+job1', '+x1', '+-1', '+1.-x', `+1.${'n'.repeat(65)}`])
      assert.match((await into(odd, abe.target, where)).err, /Permission denied/, odd);
    await abe.ssh([abe.target, `scancel ${young}`]);
  });

  await t.test(
    "another person's job is none of one's own, and a step that does not start is given up",
    async () => {
      using other = await sshPerson(service, 'p0');
      const { out } = await other.ssh([other.target, "sbatch --wrap 'sleep 900'"]);
      const id = /job (\d+)/.exec(out)?.[1];
      assert.ok(id, out);
      await eventually(
        async () => (await other.ssh([other.target, 'squeue -h --me -o %T'])).out,
        (state) => state === 'RUNNING\n',
      );
      assert.match((await into(`+${id}`, abe.target, 'true')).err, new RegExp(`no job ${id} that runs now`));
      const hang = 'mkdir bin; printf "#!/bin/sh\\nexec sleep 600\\n" > bin/srun; chmod +x bin/srun';
      await other.ssh([other.target, `${hang}; echo 'PATH=~/bin:$PATH' > .bashrc`]);
      other.options[other.options.indexOf('-l') + 1] += '+job';
      assert.match(
        (await other.ssh([other.target, 'true'])).err,
        /Slurm takes too long to start a step in the job/,
      );
    },
  );

  await t.test('of a job on two nodes the first, or the one that is named', async () => {
    const id = await submit('-N2 -J wide');
    assert.equal((await into(`+${id}`, abe.target, 'hostname')).out, 'a1\n');
    assert.equal((await into(`+${id}.a2`, abe.target, 'hostname')).out, 'a2\n');
    assert.match((await into(`+${id}.a3`, abe.target, 'true')).err, /runs on a\[1-2\], not on a3/);
    await abe.ssh([abe.target, `scancel ${id}`]);
  });

  for (const exclusive of ['', ' --exclusive'])
    await t.test(`all GPUs of the job on that node, however they were asked for${exclusive}`, async () => {
      const asked = [
        ...['--gres=gpu:2', '--gpus=3', '--gpus=h100:2', '--gpus-per-node=2', '-n3 --gpus-per-task=1'],
        ...['--gpus-per-socket=1 --sockets-per-node=1', '-c2'],
        // Of both nodes, others have jobs on one.
        ...(exclusive === ''
          ? ['-N2 --gres=gpu:1', '-N2 --gpus=4', '-N2 --gpus-per-node=h100:1', '-N2 -n4 --gpus-per-task=1']
          : []),
      ];
      for (const options of asked) {
        const id = await submit(`${options}${exclusive}`);
        const job = (await lab.on('head', `scontrol -d -o show job ${id}`)).out;
        for (const [, nodes = '', gres = ''] of job.matchAll(/ Nodes=(\S+) .*?GRES=(\S*)/g))
          for (const node of expandHosts(nodes)) {
            const { out, err } = await into(
              `+${id}.${node}`,
              abe.target,
              'hostname; echo $CUDA_VISIBLE_DEVICES',
            );
            const [, indexes = ''] = /IDX:([-0-9,]+)/.exec(gres) ?? [];
            const devices = indexes === '' ? '' : expandHosts(`g[${indexes}]`).join(',').replaceAll('g', '');
            assert.equal(out, `${node}\n${devices}\n`, `${options}${exclusive}: ${gres} ${err}`);
          }
        await lab.on('head', `scancel ${id}`);
      }
    });

  await t.test('what the person sets for Slurm, or prints at a start, changes nothing', async () => {
    const id = await submit('-w a2 --gres=gpu:1 -J plain');
    await lab.on(
      'head',
      `printf '%s\\n' 'export SQUEUE_FORMAT=%j SQUEUE_STATES=PD SLURM_TIME_FORMAT=relative SLURM_NTASKS=3' 'printf out; printf err >&2' > /home/abe/.bashrc`,
    );
    const { out, err } = await into(`+${id}`, abe.target, 'echo in; env | grep TIME_FORMAT');
    await lab.on('head', 'rm /home/abe/.bashrc');
    assert.match(out, /in\nSLURM_TIME_FORMAT=relative\n$/, err);
    await lab.on('head', `scancel ${id}`);
  });

  await t.test(
    'a controller that has just come back is waited for, and Slurm’s own words are read',
    async () => {
      const id = await submit('-w a2 -J patient');
      lab.control('restart', 'slurmctld');
      assert.equal((await into(`+${id}`, abe.target, 'echo in')).out, 'in\n');
      await lab.on('head', `scontrol hold ${id}; scontrol requeuehold ${id}`);
      const other = await submit('-w a1 -J broken');
      lab.control('stop', 'slurmd-a1');
      assert.match(
        (await into(`+${other}`, abe.target, 'true')).err,
        /The step in the job ended\. Slurm says: \w+/,
      );
      lab.control('start', 'slurmd-a1');
      await lab.on('head', `scancel ${id} ${other}`);
    },
  );

  await t.test('a job that is requeued waits to run again, and what a killed step left goes', async () => {
    const id = await submit('-w a2 --requeue -J again');
    const open = named(`+${id}`, () => abe.start([abe.target, 'trap "" TERM; echo in; sleep 77777']));
    assert.equal(await open.said, 'in\n');
    await lab.on('head', `scontrol requeuehold ${id}`);
    assert.match(
      (await open.ended).err,
      new RegExp(`Job ${id} went back into the queue and waits to run again`),
    );
    await lab.on(
      'a2',
      'install -d -o abe -m 700 /tmp/andromeda-job.left; echo 4000000 > /tmp/andromeda-job.left/pid',
    );
    const next = await submit('-w a2 -J next');
    await into(`+${next}`, abe.target, 'true');
    assert.equal((await lab.on('a2', 'ls -d /tmp/andromeda-job.left')).status, 2);
    await lab.on('head', `scancel ${id} ${next}`);
  });

  await t.test('arrays and heterogeneous jobs', async () => {
    const array = await submit('--array=3,5 -J sweep');
    const task = 'echo $SLURM_ARRAY_TASK_ID';
    assert.equal((await into(`+${array}_3`, abe.target, task)).out, '3\n');
    assert.match((await into(`+${array}`, abe.target, 'true')).err, /^$/);
    await abe.ssh([abe.target, `scancel ${array}`]);
    const both = await abe.ssh([abe.target, "sbatch -w a1 : -w a2 --wrap 'sleep 900'"]);
    const id = /job (\d+)/.exec(both.out)?.[1];
    await eventually(running, (ids) => ids.includes(`${id}+1`));
    const second = await into(`+${id}+1`, abe.target, 'hostname');
    assert.equal(second.out, 'a2\n', second.err);
    await abe.ssh([abe.target, `scancel ${id}`]);
  });

  await t.test('files go in and out, and a forward leads to the node', async () => {
    const bytes = randomBytes(3_000_000);
    const file = join(lab.directory, 'bytes');
    writeFileSync(file, bytes);
    const options = abe.options.flatMap((one) => (one === '-p' ? ['-P'] : [one]));
    const at = options.indexOf('-l');
    options.splice(at, 2);
    const name = `${alpha}.abe+job@127.0.0.1`;
    const scp = (...args: string[]) =>
      promisify(execFile)('scp', ['-q', ...options, ...args], { timeout: limit(60_000) });
    await scp(file, `${name}:copy`);
    await scp(`${name}:copy`, `${file}.back`);
    assert.ok(readFileSync(`${file}.back`).equals(bytes));
    const server = createServer((socket) => socket.end('from the node'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const through = await into('+job', '-W', `127.0.0.1:${port}`, abe.target);
    server.close();
    assert.equal(through.out, 'from the node');
    assert.match((await into('+job', '-W', '192.0.2.1:22', abe.target)).err, /refused: only localhost/);
  });

  await t.test('rsync goes in, and a notebook in the job is reached by a forwarded port', async () => {
    const from = join(lab.directory, 'tree');
    mkdirSync(join(from, 'below'), { recursive: true });
    writeFileSync(join(from, 'below/file'), 'in a tree');
    const at = abe.options.indexOf('-l');
    const options = abe.options.toSpliced(at, 2).map((one) => (/[^\w./=-]/.test(one) ? `'${one}'` : one));
    const shell = ['ssh', ...options].join(' ');
    const target = `${alpha}.abe+job@127.0.0.1:tree/`;
    await promisify(execFile)('rsync', ['-a', '-e', shell, `${from}/`, target], { timeout: limit(60_000) });
    assert.equal((await into('+job', abe.target, 'cat tree/below/file')).out, 'in a tree');
    const [local, remote] = await freePorts(2);
    const serve = `use IO::Socket::INET; $|=1; $s=IO::Socket::INET->new(LocalAddr=>q(127.0.0.1:${remote}),Listen=>5);
      print qq(up\\n); while($c=$s->accept){ <$c>; print $c qq(HTTP/1.0 200 OK\\r\\n\\r\\nnotebook of $ENV{SLURM_JOB_ID}); close $c }`;
    const forward = `127.0.0.1:${local}:127.0.0.1:${remote}`;
    const open = named('+job', () => abe.start(['-L', forward, abe.target, `exec perl -e '${serve}'`]));
    assert.equal(await open.said, 'up\n');
    const text = await (await fetch(`http://127.0.0.1:${local}/`)).text();
    assert.match(text, /^notebook of \d+$/);
    open.child.kill();
    await open.ended;
  });

  await t.test(
    'the way of VS Code: a shell that is fed a large script, and a dynamic forward to the node',
    async () => {
      const [socks, remote] = await freePorts(2);
      const { child } = named('+job', () =>
        abe.start(['-T', '-D', `127.0.0.1:${socks}`, abe.target, 'bash']),
      );
      let out = '';
      child.stdout?.on('data', (data: Buffer) => {
        out += data;
      });
      const serve = `use IO::Socket::INET; $s=IO::Socket::INET->new(LocalAddr=>q(127.0.0.1:${remote}),Listen=>5);
      while($c=$s->accept){ <$c>; print $c qq(HTTP/1.0 200 OK\\r\\n\\r\\nserver of $ENV{SLURM_JOB_ID}); close $c }`;
      child.stdin?.write(`${'# a line of the script that installs the server\n'.repeat(20_000)}perl -e '${serve}' &
      sleep 1; echo "listeningOn=$((${remote} + 0))="\n`);
      await eventually(
        async () => out,
        (text) => text.includes(`listeningOn=${remote}=`),
      );
      const socket = await throughSocks(socks ?? 0, '127.0.0.1', remote ?? 0);
      assert.ok(socket);
      socket.write('GET / HTTP/1.0\r\n\r\n');
      let answer = '';
      socket.on('data', (data: Buffer) => {
        answer += data;
      });
      await once(socket, 'end');
      socket.destroy();
      assert.match(answer, /server of \d+$/);
      child.stdin?.end('kill $!; exit 4\n');
      const [status] = await once(child, 'close');
      assert.equal(status, 4);
    },
  );

  await t.test('what a node lacks is said at the login, and to the operator before', async () => {
    const problems = async (): Promise<string> => {
      const { body } = await service.business('/operator/problems', { as: 'root' });
      return JSON.stringify(body.problems);
    };
    assert.match(await problems(), /TaskPlugin has no task\/cgroup/);
    assert.doesNotMatch(await problems(), /not installed/);
    const id = await submit('-w a1 -J bare');
    await lab.on('a1', 'mount --bind /dev/null /usr/sbin/sshd');
    assert.match((await into(`+${id}`, abe.target, 'true')).err, /OpenSSH's server is not installed on a1\./);
    await eventually(problems, (text) => /a1: OpenSSH's server is not installed/.test(text));
    await lab.on('a1', 'umount /usr/sbin/sshd');
    await eventually(problems, (text) => !/not installed/.test(text));
    await abe.ssh([abe.target, `scancel ${id}`]);
  });

  await t.test('when the job ends, so does its session, with the reason, and nothing is left', async () => {
    const id = await submit('-w a1 -J short');
    const open = named(`+${id}`, () => abe.start([abe.target, 'echo in; sleep 77777']));
    assert.equal(await open.said, 'in\n');
    const { body } = await service.business('/operator/sessions', { as: 'root' });
    const [session] = body.sessions ?? body.items;
    assert.deepEqual([session.job, session.job_node], [id, 'a1']);
    await abe.ssh([abe.target, `scancel ${id}`]);
    assert.match((await open.ended).err, new RegExp(`Job ${id} ended \\(CANCELLED\\)\\.`));
    for (const [host, what] of [
      ['a1', 'sleep 77777|andromeda-job'],
      ['head', 'srun|andromeda-job'],
    ] as const)
      await eventually(
        async () => (await lab.on(host, `pgrep -fau abe '${what}' || true`)).out,
        (left) => left === '',
      );
  });

  await t.test('a job that runs out of time says so before, and ends the session', async () => {
    const id = await submit('-w a1 -t 1 -J brief');
    // A command that ends with Slurm's SIGTERM ends its connection by itself, which may be before the job has ended.
    const command = 'trap "" TERM; echo in; sleep 600';
    const open = named(`+${id}`, () => abe.start([abe.target, command]));
    const { err } = await open.ended;
    assert.match(err, new RegExp(`Job ${id} ends in a minute\\.\\s+Job ${id} ended \\(TIMEOUT\\)\\.`));
  });

  await t.test('fifty at once', async () => {
    const ran = await Promise.all(Array.from({ length: 50 }, () => into('+job', abe.target, 'hostname')));
    assert.deepEqual(
      ran.map(({ out, err }) => out || err),
      Array<string>(50).fill('a2\n'),
    );
  });

  await t.test('when its node is gone, the session ends and says how', async () => {
    const id = await submit('-w a1 --no-requeue -J lost');
    const open = named(`+${id}`, () => abe.start([abe.target, 'echo in; sleep 600']));
    assert.equal(await open.said, 'in\n');
    await lab.on('head', 'scontrol update NodeName=a1 State=DOWN Reason=gone');
    assert.match((await open.ended).err, new RegExp(`Job ${id} ended \\(NODE_FAIL\\)\\.`));
    assert.match((await into(`+${id}`, abe.target, 'true')).err, new RegExp(`no job ${id} that runs now`));
    await lab.on('head', 'scontrol update NodeName=a1 State=RESUME');
  });

  await t.test('a revoked person is out of the job, and what ran there ends', async () => {
    const open = named('+job', () => abe.start([abe.target, 'echo in; exec sleep 88888']));
    assert.equal(await open.said, 'in\n');
    await permit(service, abe, ['clusters.read']);
    assert.equal((await open.ended).status, 255);
    await eventually(
      async () => (await lab.on('a2', 'pgrep -f "[s]leep 88888" || true')).out,
      (left) => left === '',
    );
  });
});
