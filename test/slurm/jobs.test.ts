/** Logins into a running job on a real Slurm cluster: `<cluster>.<user>+job`. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { alpha, becomes, eventually } from '../support/app.ts';
import { fails } from '../support/heard.ts';
import { limit } from '../support/limit.ts';
import { freePorts } from '../support/ports.ts';
import { throughSocks } from '../support/socks.ts';
import { type SshPerson, sshPerson } from '../support/ssh-person.ts';
import { noSlurm, startSlurmLab } from './lab.ts';
import { permit, startService } from './service.ts';

test('a login into a job', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ HOMES: 'shared' });
  // Little is waited for that takes a look at the hosts, and looks take processors.
  await using service = await startService(lab, { rollout: 'live' }, { sync: { intervalSeconds: 10 } });
  using abe = await sshPerson(service, 'abe');
  using other = await sshPerson(service, 'p0');
  using third = await sshPerson(service, 'p1');
  /** The first name that a client is given counts, and is read when it starts. */
  const named = <T>(suffix: string, act: (person: SshPerson) => T, person = abe): T => {
    const at = person.options.indexOf('-l') + 1;
    const name = person.options[at] ?? '';
    person.options[at] = `${name}${suffix}`;
    const result = act(person);
    person.options[at] = name;
    return result;
  };
  const into = (suffix: string, ...args: string[]) => named(suffix, () => abe.ssh(args));
  /** A session that is open in a job; the end of its step ends it only with the job. */
  const stay = async (suffix: string, person = abe) => {
    const command = 'trap "" TERM; echo in; sleep 77777';
    const open = named(suffix, () => person.start([person.target, command]), person);
    assert.equal(await open.said, 'in\n', open.err());
    return open;
  };
  const submit = (options: string) => lab.runJob(options, 'abe');
  const cancel = (...ids: string[]) => lab.shell('head', `scancel ${ids.join(' ')}`);

  // What takes long goes on while the others do.
  const briefJob = `${await lab.runJob('--array=0-1 -w a2 -t 1 -J brief', 'p1')}_1`;
  const brief = await stay(`+${briefJob}`, third);
  const ofOther = await lab.runJob('-w a2', 'p0');
  const hang = 'mkdir bin; printf "#!/bin/sh\\nexec sleep 600\\n" > bin/srun; chmod +x bin/srun';
  await other.ssh([other.target, `${hang}; echo 'PATH=~/bin:$PATH' > .bashrc`]);
  const hanging = named('+job', () => other.ssh([other.target, 'true']), other);

  await t.test('without one it is refused, and says why', async () => {
    fails(await into('+job', abe.target, 'true'), 255, /You have no job that runs now\./);
  });

  const train = await submit('--gres=gpu:2 -w a2 -J train');

  await t.test('a command runs on its node, with its devices and environment', async () => {
    const where = 'hostname; id -un; echo $SLURM_JOB_ID $CUDA_VISIBLE_DEVICES; exit 7';
    const ran = await into('+job', abe.target, where);
    assert.deepEqual([ran.status, ran.out, ran.err], [7, `a2\nabe\n${train} 0,1\n`, '']);
    const tty = await into('+job', '-tt', abe.target, 'tty; echo done');
    assert.match(tty.out, /^\/dev\/pts\/\d+\r\ndone\r\n$/);
  });

  await t.test('the youngest is entered, another by its ID, and a refusal lists them all', async () => {
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
    await cancel(young);
  });

  await t.test("another person's job is none of one's own", async () => {
    const { err } = await into(`+${ofOther}`, abe.target, 'true');
    assert.match(err, new RegExp(`no job ${ofOther} that runs now`));
  });

  await t.test('of a job on two nodes the first, or the one that is named, with its GPUs', async () => {
    const id = await submit('-N2 --gpus-per-node=h100:2 -J wide');
    const where = 'hostname; echo $CUDA_VISIBLE_DEVICES | tr , "\\n" | wc -l';
    assert.equal((await into(`+${id}`, abe.target, where)).out, 'a1\n2\n');
    assert.equal((await into(`+${id}.a2`, abe.target, where)).out, 'a2\n2\n');
    assert.match((await into(`+${id}.a3`, abe.target, 'true')).err, /runs on a\[1-2\], not on a3/);
    await cancel(id);
  });

  await t.test('what the person sets for Slurm, or prints at a start, changes nothing', async () => {
    const id = await submit('-w a2 --gres=gpu:1 -J plain');
    const set = 'export SQUEUE_FORMAT=%j SQUEUE_STATES=PD SLURM_TIME_FORMAT=relative SLURM_NTASKS=3';
    const print = `printf '%s\\n' '${set}' 'printf out; printf err >&2' > /home/abe/.bashrc`;
    await lab.shell('head', print);
    const { out, err } = await into(`+${id}`, abe.target, 'echo in; env | grep TIME_FORMAT');
    await lab.shell('head', 'rm /home/abe/.bashrc');
    assert.match(out, /in\nSLURM_TIME_FORMAT=relative\n$/, err);
    await cancel(id);
  });

  await t.test('a controller that came back is waited for, and Slurm’s own words are read', async () => {
    const id = await submit('-w a1 -J patient');
    lab.control('restart', 'slurmctld');
    assert.equal((await into(`+${id}`, abe.target, 'echo in')).out, 'in\n');
    lab.control('stop', 'slurmd-a1');
    const { err } = await into(`+${id}`, abe.target, 'true');
    assert.match(err, /The step in the job ended\. Slurm says: \w+/);
    lab.control('start', 'slurmd-a1');
    await cancel(id);
  });

  await t.test('a job that is requeued waits to run again, and what a killed step left goes', async () => {
    const id = await submit('-w a2 --requeue -J again');
    const open = await stay(`+${id}`);
    await lab.shell('head', `scontrol requeuehold ${id}`);
    const { err } = await open.ended;
    assert.match(err, new RegExp(`Job ${id} went back into the queue and waits to run again`));
    const left = '/tmp/andromeda-job.left';
    await lab.shell('a2', `install -d -o abe -m 700 ${left}; echo 4000000 > ${left}/pid`);
    await into('+job', abe.target, 'true');
    assert.equal((await lab.on('a2', `ls -d ${left}`)).status, 2);
    await cancel(id);
  });

  await t.test('arrays and heterogeneous jobs', async () => {
    const array = await submit('--array=3,5 --gpus=2 -w a1 -J sweep');
    const gpus = 'echo $CUDA_VISIBLE_DEVICES | tr , "\\n" | wc -l';
    // The last one has the ID of the array.
    for (const task of ['3', '5']) {
      const ran = await into(`+${array}_${task}`, abe.target, `echo $SLURM_ARRAY_TASK_ID; ${gpus}`);
      assert.equal(ran.out, `${task}\n2\n`, ran.err);
    }
    assert.match((await into(`+${array}`, abe.target, 'true')).err, /^$/);
    const last = await stay(`+${array}_5`);
    await cancel(`${array}_5`);
    assert.match((await last.ended).err, new RegExp(`Job ${array}_5 ended \\(CANCELLED\\)\\.`));
    const both = await submit('-w a1 --gpus=1 : -w a2 --gpus=2');
    for (const part of [0, 1]) {
      const ran = await into(`+${both}+${part}`, abe.target, `hostname; ${gpus}`);
      assert.equal(ran.out, `a${part + 1}\n${part + 1}\n`, ran.err);
    }
    await cancel(array, both);
  });

  await t.test('files go in and out by scp and rsync', async () => {
    const bytes = randomBytes(3_000_000);
    const file = join(lab.directory, 'bytes');
    writeFileSync(file, bytes);
    const options = abe.options.toSpliced(abe.options.indexOf('-l'), 2);
    const name = `${alpha}.abe+job@127.0.0.1`;
    const run = (program: string, ...args: string[]) =>
      promisify(execFile)(program, args, { timeout: limit(60_000) });
    const forScp = options.map((one) => (one === '-p' ? '-P' : one));
    await run('scp', '-q', ...forScp, file, `${name}:copy`);
    await run('scp', '-q', ...forScp, `${name}:copy`, `${file}.back`);
    assert.ok(readFileSync(`${file}.back`).equals(bytes));
    const shell = ['ssh', ...options].map((one) => (/[^\w./=-]/.test(one) ? `'${one}'` : one)).join(' ');
    await run('rsync', '-a', '-e', shell, file, `${name}:tree/`);
    assert.equal((await into('+job', abe.target, 'cmp copy tree/bytes && echo same')).out, 'same\n');
  });

  await t.test('as VS Code does it: a shell that is fed a large script, and a forward', async () => {
    const [socks, remote] = await freePorts(2);
    const dynamic = ['-T', '-D', `127.0.0.1:${socks}`, abe.target, 'bash'];
    const { child, said } = named('+job', () => abe.start(dynamic));
    const serve = `use IO::Socket::INET; $|=1; $s=IO::Socket::INET->new(LocalAddr=>q(127.0.0.1:${remote}),Listen=>5);
      print qq(up\\n); while($c=$s->accept){ <$c>; print $c qq(HTTP/1.0 200 OK\\r\\n\\r\\nserver of $ENV{SLURM_JOB_ID}); close $c }`;
    const script = '# a line of the script that installs the server\n'.repeat(20_000);
    child.stdin?.write(`${script}perl -e '${serve}' &\n`);
    assert.equal(await said, 'up\n');
    const socket = await throughSocks(socks ?? 0, '127.0.0.1', remote ?? 0);
    assert.ok(socket);
    socket.write('GET / HTTP/1.0\r\n\r\n');
    assert.equal((await text(socket)).split('\n').at(-1), `server of ${train}`);
    socket.destroy();
    child.stdin?.end('kill $!; exit 4\n');
    const [status] = await once(child, 'close');
    assert.equal(status, 4);
    assert.match((await into('+job', '-W', '192.0.2.1:22', abe.target)).err, /refused: only localhost/);
  });

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
    await cancel(id);
  });

  await t.test('when the job ends, so does its session, with the reason, and nothing is left', async () => {
    const id = await submit('-w a1 -J short');
    const open = await stay(`+${id}`);
    // From the next report on, which names the job.
    const nodes = async () => {
      const { body } = await service.business('/operator/sessions', { as: 'root' });
      const ofJob = body.sessions.filter((one: { job?: string }) => one.job === id);
      return ofJob.map((one: { job_node: string }) => one.job_node).join();
    };
    await becomes(nodes, 'a1');
    await cancel(id);
    assert.match((await open.ended).err, new RegExp(`Job ${id} ended \\(CANCELLED\\)\\.`));
    await becomes(() => lab.shell('a1', "pgrep -fau abe 'sleep 77777|andromeda-job'"), '');
    await becomes(() => lab.shell('head', "pgrep -fau abe 'srun|andromeda-job'"), '');
  });

  await t.test('a job that runs out of time says so before, and ends the session', async () => {
    const { err } = await brief.ended;
    const said = `Job ${briefJob} ends in a minute\\.\\s+Job ${briefJob} ended \\(TIMEOUT\\)\\.`;
    assert.match(err, new RegExp(said));
  });

  await t.test('a step that does not start is given up', async () => {
    assert.match((await hanging).err, /Slurm takes too long to start a step in the job/);
  });

  await t.test('ten at once', async () => {
    const ran = await Promise.all(Array.from({ length: 10 }, () => into('+job', abe.target, 'hostname')));
    assert.deepEqual(new Set(ran.map(({ out, err }) => out || err)), new Set(['a2\n']));
  });

  await t.test('when its node is gone, the session ends and says how', async () => {
    const id = await submit('-w a1 --no-requeue -J lost');
    const open = await stay(`+${id}`);
    await lab.shell('head', 'scontrol update NodeName=a1 State=DOWN Reason=gone');
    assert.match((await open.ended).err, new RegExp(`Job ${id} ended \\(NODE_FAIL\\)\\.`));
    assert.match((await into(`+${id}`, abe.target, 'true')).err, new RegExp(`no job ${id} that runs now`));
  });

  await t.test('a revoked person is out of the job, and what ran there ends', async () => {
    const open = await stay('+job');
    await permit(service, abe, ['clusters.read']);
    assert.equal((await open.ended).status, 255);
    await becomes(() => lab.shell('a2', 'pgrep -u abe -f "[s]leep 77777" || true'), '');
  });
});
