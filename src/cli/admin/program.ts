/**
 * `andromeda admin`: the operator's command line. It owns the commands over the operator API and the format of their output;
 * decisions and the validation of input are left to the API.
 *
 *   argv → commander → ../verb.ts → a noun's file (names → IDs → requests) → ../net/api.ts → a table, JSON or one sentence
 */
import type { Command } from 'commander';
import { acceptBreak, bootstrap, hostNouns } from '../host.ts';
import type { ServerCommands } from '../server-commands.ts';
import { addAll, addVerb, example } from '../verb.ts';
import { audit, auditHead, auditKey, verifyAudit } from './audit.ts';
import { apply, cluster, exportLab, grant, machine, plan } from './cluster.ts';
import { gateway, installation, problems, servers, session } from './installation.ts';
import { groups, organization, purchase } from './organization.ts';
import { person } from './person.ts';

export function addAdmin(
  admin: Command,
  server: ServerCommands | undefined,
  finish: (status: number) => void,
): void {
  const part = { prefix: 'andromeda admin ', finish };
  const examples = ['plan -f lab.yaml', 'cluster list', 'audit --since 2h'].map((line) => part.prefix + line);
  admin.addHelpText('after', example(...examples));
  addAll(admin, [plan, apply, exportLab, problems, installation], part);
  const trail = addVerb(admin, audit, part);
  addAll(trail, [verifyAudit, auditHead, auditKey, ...(server ? [acceptBreak(server)] : [])], part);
  addAll(
    admin,
    [organization, person, groups, cluster, machine, grant, purchase, session, gateway, servers],
    part,
  );
  if (server) addAll(admin, [bootstrap(server), ...hostNouns(server)], part);
}
