/** The second half of the way to a shell, for each cluster: may the person log in, and is the gateway who it should be. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { visibleLine } from '../../domain/visible-text.ts';
import { readBanner } from '../../lib/ssh-banner.ts';
import type { EnvironmentOptions } from '../environment.ts';
import { type Cluster, findCluster, isInService, listClusters, unless } from '../everyday/caller.ts';
import { asWord, sshDirectory } from '../everyday/local-keys.ts';
import {
  describeMissing,
  hostAlias,
  hostKeysOf,
  isReachable,
  readSshAccess,
  type SshAccess,
  sshOptions,
} from '../everyday/ssh-host.ts';
import { createClient, type PlatformReader } from '../net/api.ts';
import { stateDirectory } from '../session/session.ts';
import { askProgram, type Finding, findingsAbout, sentenceOf } from './finding.ts';

const onAccess = findingsAbout('access');
const onHostKey = findingsAbout('host key');
const onGateway = findingsAbout('gateway');
const onSsh = findingsAbout('ssh');

/** The Ed25519 host key at an address, `ssh-ed25519 AAAA…`; undefined where it could not be asked. */
async function scanHostKey(host: string, port: number): Promise<string | undefined> {
  const args = ['-T', '5', '-t', 'ed25519', '-p', String(port), host];
  const { stdout } = await askProgram('ssh-keyscan', args, 15_000);
  return /^\S+ (ssh-ed25519 [A-Za-z0-9+/=]+)\s*$/m.exec(stdout)?.[1];
}

/** They are asked one after the other; a person who has hundreds names one. */
const mostClusters = 20;
const bannerMs = 15_000;

/** `wanted`: the only cluster to look at. */
export async function* checkClusters(
  wanted: string | undefined,
  options: EnvironmentOptions,
): AsyncGenerator<Finding> {
  const { api, platform } = createClient(options, 'andromeda doctor');
  try {
    const clusters =
      wanted === undefined
        ? (await listClusters({ api, platform }, {})).clusters.filter(isInService)
        : [await findCluster({ api, platform }, wanted, {})];
    if (clusters.length === 0)
      yield onAccess.warn('You see no cluster.', 'Ask an owner of your organization for access to one.');
    const addresses = new Map<string, { cluster: Cluster; access: SshAccess }>();
    for (const cluster of clusters.slice(0, mostClusters)) {
      const access = yield* checkAccess(platform, cluster, wanted !== undefined);
      if (access) addresses.set(`${access.hostname} ${access.port} ${access.host_key}`, { cluster, access });
    }
    if (clusters.length > mostClusters)
      yield onAccess.ok(
        `${clusters.length - mostClusters} more clusters; \`andromeda doctor <cluster>\` looks at one.`,
      );
    for (const { cluster, access } of addresses.values()) {
      yield* checkGateway(access);
      yield* checkProxy(cluster, access);
    }
  } catch (error) {
    yield onAccess.wrong(
      sentenceOf(error),
      'Name a cluster that `andromeda clusters list` prints, or try again.',
    );
  }
}

/** Yields what ssh-access says, and whether the host key that was noted is still the one; returns where to log in. */
async function* checkAccess(
  platform: PlatformReader,
  cluster: Cluster,
  isWanted: boolean,
): AsyncGenerator<Finding, SshAccess | undefined> {
  const access = await unless(readSshAccess(platform, cluster), 'forbidden', 'notFound');
  const { name } = cluster;
  if (!access) {
    const text = `${name}: you may not log in there.`;
    if (isWanted)
      yield onAccess.wrong(text, 'Ask an owner of your organization for the permission clusters.ssh.');
    else yield onAccess.ok(text);
    return undefined;
  }
  if (access.ready) yield onAccess.ok(`${name} lets you in as ${visibleLine(access.username)}.`);
  else {
    const { text, fix } = parted(access, name);
    yield onAccess.wrong(text.startsWith(name) ? text : `${name}: ${text}`, fix);
  }
  try {
    if (!isReachable({ cluster, access })) return undefined;
  } catch (error) {
    yield onAccess.wrong(sentenceOf(error), 'Tell the operator of the service.');
    return undefined;
  }
  yield await checkNoted(cluster, access);
  return access;
}

/** What is missing, apart from what to do about it. What to do without a key was said when the keys were looked at. */
function parted(access: SshAccess, name: string): { text: string; fix?: string } {
  const sentence = describeMissing(access, name);
  const [, what, advice] = /^(.*?); (.*)$/s.exec(sentence) ?? [];
  if (access.lapsed !== undefined || what === undefined || advice === undefined) return { text: sentence };
  if (access.reason === 'no_keys') return { text: `${what}.` };
  return { text: `${what}.`, fix: advice.charAt(0).toUpperCase() + advice.slice(1) };
}

/** What `andromeda ssh` has noted of the cluster. */
async function checkNoted({ id, name }: Cluster, access: SshAccess): Promise<Finding> {
  const file = join(stateDirectory(), 'known_hosts');
  if (
    await stat(file).then(
      (found) => found.isDirectory(),
      () => false,
    )
  )
    return onHostKey.wrong(
      `${file} is a directory, so that no host key can be noted there.`,
      `\`mv ${asWord(file)} ${asWord(`${file}.old`)}\``,
    );
  const text = await readFile(file, 'utf8').catch(() => '');
  const noted = text.split('\n').filter((line) => line.startsWith(`${id} `));
  if (noted.includes(`${id} ${access.host_key}`)) return onHostKey.ok(`${name}: noted in ${file}.`);
  if (noted.length === 0)
    return onHostKey.ok(`${name}: not noted yet; \`andromeda ssh\` and \`andromeda ssh-config\` do it.`);
  return onHostKey.warn(
    `${name}: the gateway has another key than the one that is noted in ${file}.`,
    `\`andromeda ssh ${name}\` or \`andromeda ssh-config --write\` notes the new one, which the service vouches for.`,
  );
}

async function* checkGateway(access: SshAccess): AsyncGenerator<Finding> {
  const { hostname, port } = access;
  const at = `${hostname} port ${port}`;
  const answer = await readBanner(hostname, port, bannerMs);
  if ('fault' in answer)
    return yield onGateway.wrong(
      `${at}: ${answer.fault}.`,
      `Is this machine in a network that may reach ${at} (firewall, VPN)? Ask the operator of the service.`,
    );
  if (!answer.banner.startsWith('SSH-2.0-'))
    return yield onGateway.wrong(
      `${at} does not speak SSH: '${visibleLine(answer.banner)}'.`,
      'Something else answers at that address; ask the operator of the service.',
    );
  const found = await scanHostKey(hostname, port);
  if (found !== undefined && !hostKeysOf(access).includes(found))
    return yield onGateway.wrong(
      `${at} shows another host key than the service names: the connection is intercepted, or it is not the gateway.`,
      'Do not log in. Tell the operator of the service.',
    );
  yield onGateway.ok(
    `${at} answers${found === undefined ? '' : ', with the host key that the service names'}.`,
  );
  yield* checkKnownHosts(access);
}

/** The person's own ssh_config(5), where a proxy for every host is one for the gateway too. */
async function* checkProxy(cluster: Cluster, access: SshAccess): AsyncGenerator<Finding> {
  const options = sshOptions({ cluster, access }, join(stateDirectory(), 'known_hosts'), undefined);
  const flags = options.flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  const { stdout } = await askProgram('ssh', ['-G', ...flags, hostAlias(cluster)], 10_000);
  const [, setting, proxy] = /^(proxyjump|proxycommand) (?!none\r?$)(.+?)\r?$/m.exec(stdout) ?? [];
  if (setting === undefined || proxy === undefined) return;
  const name = setting === 'proxyjump' ? 'ProxyJump' : 'ProxyCommand';
  yield onSsh.warn(
    `Your ssh configuration has \`${name} ${visibleLine(proxy)}\` for the gateway: where that does not lead to it, no login does.`,
    `If \`andromeda ssh\` fails, put this at the top of ~/.ssh/config: \`Host andromeda-*\`, and in the next line \`ProxyJump none\``,
  );
}

/** ~/.ssh/known_hosts, which `andromeda ssh` does not use, and a plain ssh to the gateway does. */
async function* checkKnownHosts(access: SshAccess): AsyncGenerator<Finding> {
  const { hostname, port } = access;
  const name = port === 22 ? hostname : `[${hostname}]:${port}`;
  const args = ['-F', name, '-f', join(sshDirectory(), 'known_hosts')];
  const { stdout } = await askProgram('ssh-keygen', args, 10_000);
  const keys = stdout.split(/\r?\n/).flatMap((line) => /^[^#\s]\S* (ssh-ed25519 \S+)/.exec(line)?.[1] ?? []);
  if (keys.length === 0 || hostKeysOf(access).some((key) => keys.includes(key))) return;
  yield onHostKey.warn(
    `~/.ssh/known_hosts has another key for ${name}, so that a plain ssh refuses it.`,
    `\`ssh-keygen -R '${name}'\``,
  );
}
