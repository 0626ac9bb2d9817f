/** The directory of a site on a lab's hosts: a real slapd, and a real sssd on each host; and why there is none where there is none. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { limit } from '../support/limit.ts';
import { noSlurm, type SlurmLab } from './lab.ts';

const suffix = 'dc=lab,dc=example';
const needed = {
  slapd: '/usr/sbin/slapd',
  'ldap-utils': '/usr/bin/ldapmodify',
  'sssd-ldap': '/usr/sbin/sssd',
  'sssd-tools': '/usr/sbin/sssctl',
};
const missing = Object.entries(needed).find(([, file]) => !existsSync(file));

export const noDirectory: string | false = noSlurm || (missing ? `${missing[0]} is not installed` : false);

/** The number of dn01 is 33001, and so on to dn40; their group is users, 33000. */
export const uidOf = (name: string) => 33_000 + Number(name.slice(2));

export const everyone = Array.from({ length: 40 }, (_, index) => `dn${`${index + 1}`.padStart(2, '0')}`);

function entries(): string {
  const unit = (name: string) => `dn: ou=${name},${suffix}\nobjectClass: organizationalUnit\nou: ${name}\n`;
  const person = (name: string) => {
    const classes = ['inetOrgPerson', 'posixAccount', 'shadowAccount'].map((one) => `objectClass: ${one}\n`);
    const posix = `uidNumber: ${uidOf(name)}\ngidNumber: 33000\nhomeDirectory: /home/${name}\nloginShell: /bin/bash\n`;
    return `dn: uid=${name},ou=people,${suffix}\n${classes.join('')}uid: ${name}\ncn: ${name}\nsn: ${name}\n${posix}`;
  };
  const group = (name: string, gid: number, ...members: string[]) => {
    const lines = members.map((member) => `memberUid: ${member}\n`).join('');
    return `dn: cn=${name},ou=groups,${suffix}\nobjectClass: posixGroup\ncn: ${name}\ngidNumber: ${gid}\n${lines}`;
  };
  return [
    `dn: ${suffix}\nobjectClass: dcObject\nobjectClass: organization\ndc: lab\no: Lab\n`,
    ...['people', 'groups'].map(unit),
    ...everyone.map(person),
    group('users', 33_000),
    ...['vision', 'robotics', 'staff'].map((name, index) => group(name, 33_100 + index, 'dn01', 'dn02')),
    group('docker', 33_200, 'dn03'),
  ].join('\n');
}

export type Directory = Awaited<ReturnType<typeof startDirectory>>;

/** Everything of it runs on the lab's hosts, and ends with them. */
export async function startDirectory(lab: SlurmLab, hosts: readonly string[]) {
  const port = lab.port + 18;
  const home = join(lab.directory, 'ldap');
  const run = async (host: string, command: string) => {
    const { status, out } = await lab.on(host, command);
    assert.equal(status, 0, `${host}: ${command}: ${out}`);
    return out;
  };
  mkdirSync(join(home, 'db'), { recursive: true });
  const schemas = ['core', 'cosine', 'nis', 'inetorgperson'];
  writeFileSync(
    join(home, 'slapd.conf'),
    `${schemas.map((name) => `include /etc/ldap/schema/${name}.schema\n`).join('')}pidfile ${home}/pid
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix "${suffix}"
rootdn "cn=admin,${suffix}"
rootpw secret
directory ${home}/db
`,
  );
  writeFileSync(join(home, 'people.ldif'), entries());
  const url = `ldap://127.0.0.1:${port}`;
  const start = `slapd -f ${home}/slapd.conf -h ${url} -s 0`;
  await run('head', `slapadd -q -f ${home}/slapd.conf -l ${home}/people.ldif && ${start}`);
  await Promise.all(hosts.map((host) => startSssd(lab, host, url, run)));
  const change = (ldif: string) => {
    const input = ldif.replaceAll(/^dn: (\w+)$/gm, `dn: uid=$1,ou=people,${suffix}`);
    const bind = ['-x', '-H', url, '-D', `cn=admin,${suffix}`, '-w', 'secret'];
    execFileSync('ldapmodify', bind, { input, timeout: limit(20_000), stdio: ['pipe', 'ignore', 'pipe'] });
  };
  const replace = (name: string, field: string, value: string | number) =>
    change(`dn: ${name}\nchangetype: modify\nreplace: ${field}\n${field}: ${value}\n`);
  const { login, controller, compute = {} } = lab.settings();
  const accounts = 'directory' as const;
  return {
    /** All hosts have their people from it. */
    settings: {
      login: login.map((one) => ({ ...one, accounts })),
      controller: { ...controller, accounts },
      compute: { ...compute, accounts },
    },
    replace,
    remove: (name: string) => change(`dn: ${name}\nchangetype: delete\n`),
    /** slapd stops to answer, as if it hung; and goes on, which sssd is made to see at once. */
    hang: () => run('head', `kill -STOP $(cat ${home}/pid)`),
    async goOn() {
      await run('head', `kill -CONT $(cat ${home}/pid)`);
      await Promise.all(hosts.map((host) => run(host, 'kill -USR2 $(cat /run/sssd.pid)')));
    },
    /** Entries that hosts remember are read anew at the next question. */
    forget: (name: string) => Promise.all(hosts.map((host) => lab.on(host, `sss_cache -u ${name}`))),
  };
}

async function startSssd(
  lab: SlurmLab,
  host: string,
  url: string,
  run: (host: string, command: string) => Promise<string>,
): Promise<void> {
  const own = join(lab.directory, 'hosts', host);
  cpSync('/var/lib/sss', join(own, 'var/sss'), {
    recursive: true,
    filter: (path) => !/\/(db|mc)\/.|pipes\/.*\/?nss$/.test(path),
  });
  rmSync(join(own, 'etc/sssd/conf.d'), { recursive: true, force: true });
  mkdirSync(join(own, 'etc/sssd'), { recursive: true });
  const settings = `[sssd]
services = nss, pam
domains = lab
[nss]
entry_negative_timeout = 1
[domain/lab]
id_provider = ldap
auth_provider = ldap
access_provider = ldap
ldap_access_order = expire
ldap_account_expire_policy = shadow
ldap_uri = ${url}
ldap_search_base = ${suffix}
ldap_schema = rfc2307
ldap_id_use_start_tls = false
ldap_auth_disable_tls_never_use_in_production = true
ldap_opt_timeout = 2
cache_credentials = true
`;
  writeFileSync(join(own, 'etc/sssd/sssd.conf'), settings, { mode: 0o600 });
  const start = `setsid sssd -i --logger=stderr > ${own}/sssd.log 2>&1 < /dev/null &`;
  await run(
    host,
    `${start} for i in $(seq 300); do getent passwd dn40 > /dev/null && exit; sleep 0.1; done; cat ${own}/sssd.log; exit 1`,
  );
}
