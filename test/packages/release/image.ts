/**
 * The image of dist/release in podman: read-only, without capabilities, as its own user, with one volume. It serves, says so to a
 * health check, keeps its data through a new container, and stops when it is told to. Part of `npm run release:test`.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { limit } from '../../support/limit.ts';
import { freePorts } from '../../support/ports.ts';
import { released } from './released.ts';

test('the image serves from a read-only root with one volume, and a new container goes on with it', async () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  const podman = (...args: string[]) => {
    const storage = ['--root', at('storage'), '--runroot', at('run'), '--storage-driver', 'vfs'];
    // crun, the usual one, takes no machine with both kinds of control groups.
    const runtime = ['--runtime', 'runc', '--cgroup-manager', 'cgroupfs'];
    const { status, stdout, stderr } = spawnSync('podman', [...storage, ...runtime, ...args], {
      encoding: 'utf8',
      timeout: limit(120_000),
    });
    return { status, out: stdout.trim(), err: stderr.trim() };
  };
  const [platform = 0, business = 0, issuer = 0, gateway = 0] = await freePorts(4);
  const address = (port: number) => ({ listen: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}` });
  const config = {
    dataDir: '/var/lib/andromeda',
    platform: address(platform),
    business: address(business),
    gateway: { listen: `127.0.0.1:${gateway}` },
    identity: { embedded: address(issuer) },
  };
  writeFileSync(at('andromeda.yaml'), JSON.stringify(config), { mode: 0o644 });
  const loaded = podman('load', '--quiet', '--input', released(/-linux-x64\.oci\.tar$/));
  const image = /: (\S+)$/.exec(loaded.out)?.[1] ?? '';
  assert.match(image, /\/andromeda:\d/, loaded.err);
  const start = () => {
    const flags = ['--detach', '--name', 'one', '--read-only', '--cap-drop=all', '--network=host'].concat(
      '--security-opt=no-new-privileges',
      // No more than the machine that this runs on may give.
      '--ulimit=nofile=4096:4096',
      '--ulimit=nproc=4096:4096',
      '--volume=data:/var/lib/andromeda',
      `--volume=${at('andromeda.yaml')}:/etc/andromeda/andromeda.yaml:ro`,
    );
    const started = podman('run', ...flags, image);
    assert.equal(started.status, 0, started.err);
    const check = async () => podman('exec', 'one', 'andromeda', 'service', 'ready');
    return eventually(check, ({ status }) => status === 0);
  };
  try {
    assert.equal((await start()).out, 'The service serves.');
    const answer = await fetch(`http://127.0.0.1:${business}/readyz`);
    assert.deepEqual(await answer.json(), { status: 'ready' });
    const key = podman('exec', 'one', 'andromeda', 'version').out;
    assert.match(key, /^fast SSH ciphers loaded$/m);
    const pid = podman('inspect', '--format', '{{.State.Pid}}', 'one').out;
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    assert.match(status, /^Uid:\t10001\t10001\t10001\t10001$/m);
    assert.match(status, /^CapEff:\t0+$/m);
    const missing = podman('exec', 'one', 'sh');
    assert.notEqual(missing.status, 0, 'there is no shell');
    podman('stop', '--time', '30', 'one');
    assert.equal(podman('inspect', '--format', '{{.State.ExitCode}}', 'one').out, '0');
    const hostKey = () =>
      readFileSync(at(`storage/volumes/data/_data/keys/gateway_host_ed25519.pub`), 'utf8');
    const before = hostKey();
    podman('rm', 'one');
    await start();
    assert.equal(hostKey(), before);
  } finally {
    podman('rm', '--force', 'one');
    podman('volume', 'rm', 'data');
    podman('rmi', '--force', image);
  }
});
