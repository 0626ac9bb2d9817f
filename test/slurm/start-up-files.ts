/** Which start-up files the shell of an account reads through the gateway, and when it is logged in to without one. */
import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, type TestApp } from '../support/app.ts';
import { keygen } from '../support/ssh-keys.ts';
import { sshPerson } from '../support/ssh-person.ts';
import type { SlurmLab } from './lab.ts';

const files = ['.bash_profile', '.bashrc', '.zshenv', '.zprofile', '.zshrc', '.profile'];

/** A command, with a terminal and without, and a login are as with the login node's own sshd, in each of these shells. */
export async function assertStartUpFiles(lab: SlurmLab, service: TestApp, shells: string[]): Promise<void> {
  const key = keygen('-t', 'ed25519');
  using abe = await sshPerson(service, 'abe', key);
  const fish = 'install -d .config/fish; echo "echo config.fish" > .config/fish/config.fish';
  const each = `for name in ${files.join(' ')}; do echo "echo $name" > $name; done`;
  await lab.shell('head', `cd /home/abe; ${each}; ${fish}`);
  appendFileSync(join(lab.directory, 'etc/gateway.pub'), `${key.publicKey}\n`);
  const through = [...abe.options];
  const straight = straightTo(lab, through, 'abe');
  const printed = async (options: string[], args: string[]) => {
    abe.options.splice(0, Infinity, ...options);
    // A terminal prints what is typed before the shell reads it, or not.
    const { status, out, err } = await abe.ssh(args, args.length === 1 ? 'exit\n' : '');
    assert.equal(status, 0, err);
    return out;
  };
  for (const shell of [...shells, '/bin/bash']) {
    await service.write('/me/login-preferences', { as: 'abe', method: 'PUT', body: { shell } });
    await eventually(abe.access, (now) => now['shell'] === shell);
    for (const args of [[abe.target, 'echo done'], ['-tt', abe.target, 'echo done'], [abe.target]]) {
      const out = await printed(through, args);
      assert.equal(out, await printed(straight, args), `${shell} ${args.slice(1)}`);
      if (shell === '/bin/bash') assert.equal(out.match(/\.bashrc|\.bash_profile/g)?.length, 1, out);
    }
  }
  await lab.shell('head', `cd /home/abe; rm -rf .config ${files.join(' ')}`);
}

/** The options of a person with which ssh goes straight to the login node's sshd, with the same key. */
export function straightTo(lab: SlurmLab, options: readonly string[], username: string): string[] {
  const change: Record<string, string> = { '-p': `${lab.port}`, '-l': username };
  return options.map((one, at) => change[options[at - 1] ?? ''] ?? one.replace(/^(Strict.*)=yes$/, '$1=no'));
}
