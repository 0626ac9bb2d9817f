/** `andromeda code`: the address that opens VS Code on a cluster, or in a job, by its Remote-SSH extension. */
import { spawn } from 'node:child_process';
import { parseLoginName } from '../../domain/access/login-name.ts';
import { commandIo } from '../../lib/command-io.ts';
import { findBrowser } from '../commands/auth.ts';
import { failure, usage } from '../exit.ts';
import { optional, reads } from '../verb.ts';
import { findCluster, isInService, listClusters, type OrgOptions, orgFlag } from './caller.ts';
import { hostAlias, isReachable, readSshAccess } from './ssh-host.ts';

interface CodeOptions extends OrgOptions {
  job?: string | true;
  open?: true;
}

export const code = reads<CodeOptions>({
  usage: 'code <cluster>',
  summary: 'the address that opens VS Code there, by the hosts of `andromeda ssh-config --write`',
  example: 'code alpha --job --open',
  flags: [
    orgFlag,
    optional('--job [id]', 'in your job that started last, or in this one'),
    optional('--open', 'open it'),
  ],
  async run({ api, platform, options: { job, open, ...options } }, wanted = '') {
    const cluster = await findCluster({ api, platform }, wanted, options);
    const access = await readSshAccess(platform, cluster);
    if (!isReachable({ cluster, access })) throw failure(`${cluster.name} has no address to log in to.`);
    const { clusters } = await listClusters({ api, platform }, {});
    const alias = hostAlias(cluster, clusters.filter(isInService));
    const user = `${cluster.id}.${access.username}+${job}`;
    if (typeof job === 'string' && !parseLoginName(user))
      throw usage(`'${job}' is not the ID of a job, such as 4711, 4711_3 or 4711.node.`);
    // What Remote-SSH reads in place of a host's name, where it needs a login name of its own: JSON, in hexadecimal digits.
    const host =
      typeof job === 'string'
        ? Buffer.from(JSON.stringify({ hostName: alias, user })).toString('hex')
        : `${alias}${job === true ? '-job' : ''}`;
    const url = `vscode://vscode-remote/ssh-remote+${host}/`;
    if (open) openAddress(url);
    return { json: { url }, text: url };
  },
});

function openAddress(url: string): void {
  const { env } = commandIo();
  // What opens web pages need not know this kind of address; the desktop does.
  const [program, ...args] = findBrowser({ ...env, BROWSER: '' }, process.platform) ?? [];
  if (program === undefined) throw failure(`There is no desktop here to open ${url} with.`);
  const child = spawn(program, [...args, url], { env, stdio: 'ignore', detached: true });
  child.on('error', () => {}); // the address is on the screen
  child.unref();
}
