/** The second half of the way to a shell, for each cluster: may the person log in, and is the gateway who it should be. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { visibleLine } from '../../domain/text.ts';
import { readBanner } from '../../lib/ssh-banner.ts';
import type { EnvironmentOptions } from '../environment.ts';
import { type ClusterUse, commandFor, readUses, rowsOf } from '../everyday/access.ts';
import { type Cluster, unless } from '../everyday/caller.ts';
import { asWord, sshDirectory } from '../everyday/keys.ts';
import {
  hostAlias,
  hostKeysOf,
  isReachable,
  readSshAccess,
  type SshAccess,
  sshOptions,
} from '../everyday/ssh-host.ts';
import { createClient, type PlatformReader } from '../net/api.ts';
import { stateDirectory } from '../session/local-state.ts';
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

/** What the person can do on clusters, `wanted`: on that one; in words, why it is not known. */
export async function findUses(
  wanted: string | undefined,
  options: EnvironmentOptions,
): Promise<ClusterUse[] | Finding> {
  try {
    return await readUses(createClient(options, 'andromeda doctor').api, wanted);
  } catch (error) {
    return onAccess.wrong(
      sentenceOf(error),
      wanted === undefined
        ? 'Try again; if it stays, tell the operator of the service.'
        : 'Name a cluster that `andromeda access` prints, or try again.',
    );
  }
}

/** `isWanted`: it is the one that was named. */
export async function* checkClusters(
  uses: ClusterUse[] | Finding,
  isWanted: boolean,
  options: EnvironmentOptions,
): AsyncGenerator<Finding> {
  if (!Array.isArray(uses)) return yield uses;
  const { platform } = createClient(options, 'andromeda doctor');
  if (uses.length === 0)
    yield onAccess.warn(
      'There is no cluster that you can see or use yet.',
      '`andromeda access request clusters.read clusters.ssh` asks an owner or admin of your organization.',
    );
  const addresses = new Map<string, { cluster: Cluster; access: SshAccess }>();
  for (const use of uses.slice(0, mostClusters)) {
    yield* checkUse(use, isWanted);
    const { cluster_id: id, cluster_name: name, organization_id: organizationId } = use;
    const cluster = { id, name, organization: { id: organizationId, slug: organizationId } };
    const access = use.ssh.granted ? yield* checkLogin(platform, cluster) : undefined;
    if (access) addresses.set(`${access.hostname} ${access.port} ${access.host_key}`, { cluster, access });
  }
  if (uses.length > mostClusters)
    yield onAccess.ok(
      `${uses.length - mostClusters} more clusters; \`andromeda doctor <cluster>\` looks at one.`,
    );
  for (const { cluster, access } of addresses.values()) {
    yield* checkGateway(access);
    yield* checkProxy(cluster, access);
  }
}

/** What the person can do there. What is not offered, or not given, is wrong only where there is nothing else and it was asked for. */
function* checkUse(cluster: ClusterUse, isWanted: boolean): Generator<Finding> {
  const isNeither = !cluster.ssh.granted && !cluster.kubernetes.granted;
  for (const row of rowsOf(cluster)) {
    const { name, use } = row;
    if (use.state === 'none') continue;
    const message = visibleLine(use.message);
    const text = message.startsWith(name) ? message : `${name}: ${message}`;
    const command = commandFor(row);
    if (use.state === 'ready' || (!use.granted && !(isNeither && isWanted))) yield onAccess.ok(text);
    // What to do without a key was said when the keys were looked at.
    else if (command === undefined || use.reason === 'no_keys') yield onAccess.wrong(text);
    else yield onAccess.wrong(text, `\`${command}\``);
  }
}

/** Whether there is an address to log in to, and the host key that was noted is still the one; returns where that is. */
async function* checkLogin(
  platform: PlatformReader,
  cluster: Cluster,
): AsyncGenerator<Finding, SshAccess | undefined> {
  try {
    const access = await unless(readSshAccess(platform, cluster), 'forbidden', 'notFound');
    if (!access || !isReachable({ cluster, access })) return undefined;
    yield await checkNoted(cluster, access);
    return access;
  } catch (error) {
    yield onAccess.wrong(sentenceOf(error), 'Tell the operator of the service.');
    return undefined;
  }
}

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
