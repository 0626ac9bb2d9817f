/**
 * A Slurm lab with people in it before the service knows the cluster, made by hand as an administrator does it: in files, with keys,
 * homes, groups, associations, and one account of each kind that a survey has a verdict for. Start the lab with `HOMES: 'shared'`.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keygen, newPublicKey } from '../support/ssh-keys.ts';
import type { SlurmLab } from './lab.ts';

interface FilledAccount {
  uid: number;
  gid?: number;
  home?: string;
  shell?: string;
  /** The field of shadow; left out: `*`. */
  password?: string;
  /** The day it expired, as shadow has it. */
  expires?: number;
  gecos?: string;
  /** Lines of authorized_keys. */
  keys?: string[];
}

/** Hosts of the lab. */
export const filledHosts = ['head', 'a1', 'a2'] as const;

/** Plain people, each with a group and a key. */
export const plainPeople = Array.from({ length: 10 }, (_, index) => `u${index}`);

export type FilledLab = Awaited<ReturnType<typeof fillLab>>;

/** With secrets, for logins. */
function someKeys() {
  const [ada, bob] = [keygen('-t', 'ed25519'), keygen('-t', 'ed25519')];
  return { ada, bob, finn: keygen('-t', 'rsa', '-b', '2048') };
}

export async function fillLab(lab: SlurmLab) {
  const keys = someKeys();
  const next = newPublicKey;
  const adas = keys.ada.publicKey.trim();
  const bobs = keys.bob.publicKey.trim();
  const lees = next();
  const mays = next();
  const accounts: Record<string, FilledAccount> = {
    // The primary group is `users`.
    ada: { uid: 1001, gid: 100, gecos: 'Ada L.,Room 1,,', password: '$6$salt$hash', keys: [adas] },
    bob: { uid: 1003, keys: [`# laptop`, bobs] },
    cleo: { uid: 1004, keys: [next()] },
    dan: { uid: 1005, keys: [next()] },
    eve: { uid: 1006, home: '/home/old/eve', keys: [next()] },
    finn: { uid: 1007, keys: [keys.finn.publicKey.trim()] },
    gil: { uid: 1008, password: '!$6$salt$hash', keys: [next()] },
    hal: { uid: 1009, expires: 18_000, keys: [next()] },
    'Ivy.Lee': { uid: 1010, gecos: 'Ivy Lee', keys: [next()] },
    jo: { uid: 1011, keys: [next(), `restrict,command="rsync --server" ${next()}`] },
    kim: { uid: 1012, keys: [next()] },
    lou: { uid: 1013, keys: [next()] },
    // One key of his is in the shared account too.
    lee: { uid: 1014, keys: [lees] },
    may: { uid: 1015, keys: [mays, next()] },
    guest: { uid: 1016, keys: [lees, mays] },
    ned: { uid: 1017 },
    backup: { uid: 1018, keys: [next()] },
    robot: { uid: 1019, shell: '/usr/sbin/nologin' },
    twin1: { uid: 1020, keys: [next()] },
    twin2: { uid: 1020, gid: 1020 },
    toor: { uid: 0, gid: 0, home: '/root' },
    ...Object.fromEntries(plainPeople.map((name, index) => [name, { uid: 1100 + index, keys: [next()] }])),
  };
  const fill = fillScript(accounts);
  await Promise.all(
    filledHosts.map(async (host) => {
      const own = host === 'a2' ? 'sed -i "s/^cleo:x:1004:/cleo:x:1204:/" /etc/passwd\n' : '';
      const done = await lab.on(host, `set -e; umask 022\n${fill}${own}`);
      assert.deepEqual(done, { status: 0, out: '' }, host);
    }),
  );
  await fillHead(lab, accounts);
  const job = await lab.runJob('-J long', 'bob');
  return { accounts, job, keys: { ada: keys.ada, bob: keys.bob } };
}

function fillScript(accounts: Record<string, FilledAccount>): string {
  const files: Record<'passwd' | 'shadow' | 'group', string> = { passwd: '', shadow: '', group: '' };
  for (const [name, account] of Object.entries(accounts)) {
    const { uid, gid = uid, home = `/home/${name}`, shell = '/bin/bash', gecos = '' } = account;
    files.passwd += `${name}:x:${uid}:${gid}:${gecos}:${home}:${shell}\n`;
    files.shadow += `${name}:${account.password ?? '*'}:19000:0:99999:7::${account.expires ?? ''}:\n`;
    if (account.gid === undefined) files.group += `${name}:x:${gid}:\n`;
  }
  files.group += 'lab:x:5000:ada,bob\ndocker:x:5001:kim\n';
  return [
    "sed -i '/^backup:/d; /^docker:/d; /^lab:/d' /etc/passwd /etc/shadow /etc/group",
    ...Object.entries(files).map(([name, text]) => `cat >> /etc/${name} << 'END'\n${text}END`),
    "sed -i 's/^sudo:.*/sudo:x:27:dan/' /etc/group",
    'mkdir -p /etc/sudoers.d /etc/systemd/system /etc/cron.d',
    "echo 'lou ALL=(ALL) NOPASSWD: /usr/bin/systemctl' > /etc/sudoers.d/lou",
    "printf '[Service]\\nUser=backup\\nExecStart=/bin/true\\n' > /etc/systemd/system/backup.service",
    '',
  ].join('\n');
}

/** Homes and keys, which all hosts share; sshd as it is before there is a gateway; its log; associations. */
async function fillHead(lab: SlurmLab, accounts: Record<string, FilledAccount>): Promise<void> {
  const homes = Object.entries(accounts).flatMap(([name, { uid, gid = uid, home, keys = [] }]) => {
    if (uid === 0) return [];
    const path = home ?? `/home/${name}`;
    return [
      `mkdir -p ${path}/.ssh; chmod 700 ${path} ${path}/.ssh`,
      `cat > ${path}/.ssh/authorized_keys << 'END'\n${keys.join('\n')}\nEND`,
      `echo "${name} was here" > ${path}/file; chown -R ${uid}:${gid} ${path}`,
    ];
  });
  const config = join(lab.directory, 'etc/sshd-head.conf');
  const before = readFileSync(config, 'utf8');
  writeFileSync(
    config,
    before.replace(/^AuthorizedKeysFile (.*)$/m, 'AuthorizedKeysFile .ssh/authorized_keys $1'),
  );
  const log = [
    'Nov 20 09:00:01 head sshd[77]: Accepted publickey for bob from 192.0.2.7 port 4022 ssh2: ED25519 SHA256:bobs',
    'Nov 21 09:00:01 head sshd[78]: Accepted publickey for bob from 192.0.2.7 port 4023 ssh2: ED25519 SHA256:bobs',
    'Nov 21 09:30:01 head sshd[79]: Accepted password for ada from 2001:db8::7 port 4024 ssh2',
    'Nov 21 09:31:01 head sshd[80]: Failed password for ada from 192.0.2.66 port 4024 ssh2',
  ];
  const sacctmgr = [
    'sacctmgr -i add account lab Description=lab Organization=lab',
    'sacctmgr -i add user ada,bob,cleo,Ivy.Lee,u0 DefaultAccount=lab',
    'sacctmgr -i modify user where name=ada set AdminLevel=Operator',
    'sacctmgr -i add coordinator account=lab names=ada',
  ];
  const script = [
    ...homes,
    // The machine's own log is not for the lab.
    'mount -t tmpfs -o mode=755 none /var/log',
    `cat > /var/log/auth.log << 'END'\n${log.join('\n')}\nEND`,
    "echo '*/5 * * * * root scp -q /etc/passwd /etc/shadow /etc/group a2:/etc/' > /etc/cron.d/sync",
    `(${sacctmgr.join('\n')}) > /dev/null`,
  ];
  assert.deepEqual(await lab.on('head', `set -e; umask 022\n${script.join('\n')}`), { status: 0, out: '' });
  lab.control('restart', 'sshd-head');
}
