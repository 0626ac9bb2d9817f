/**
 * `andromeda admin`: the operator's command line. It owns the commands over the operator API and how their answers
 * look; it decides nothing that the API decides, and checks no shape that the API checks.
 *
 *   argv → commander → ../verb.ts → a noun's file (names → IDs → requests) → ../net/api.ts → a table, JSON or one sentence
 */
import type { Command } from 'commander';
import { newPassword } from '../ask.ts';
import type { BootstrapOptions, ServerCommands } from '../server-commands.ts';
import { addNoun, addVerb, example, withConfig } from '../verb.ts';
import { addAcceptBreak } from './accept-break.ts';
import { audit, auditHead, auditKey, verifyAudit } from './audit.ts';
import { cluster, grant, machine } from './cluster.ts';
import { gateway, installation, problems, servers } from './installation.ts';
import { addKey } from './key.ts';
import { apply, exportLab, plan } from './lab.ts';
import { organization, purchase } from './organization.ts';
import { person } from './person.ts';
import { addSecrets } from './secrets.ts';
import { session } from './session.ts';

const nouns = [organization, person, cluster, machine, grant, purchase, session, gateway, servers];

/** Fills the group; `finish` is given the exit status of what runs outside the client. */
export function addAdmin(
  admin: Command,
  server: ServerCommands | undefined,
  finish: (status: number) => void,
): void {
  admin.addHelpText(
    'after',
    example(
      'andromeda admin plan -f lab.yaml',
      'andromeda admin cluster list',
      'andromeda admin audit --since 2h',
    ),
  );
  const part = { prefix: 'andromeda admin', finish };
  for (const verb of [plan, apply, exportLab, problems, installation]) addVerb(admin, verb, part);
  const trail = addVerb(admin, audit, part);
  for (const verb of [verifyAudit, auditHead, auditKey]) addVerb(trail, verb, part);
  for (const noun of nouns) addNoun(admin, noun, part);
  if (!server) return;

  withConfig(admin.command('bootstrap'))
    .description('make the first operator, on the host itself, in the data directory')
    .requiredOption('--email <address>', 'whoever signs in with this verified address')
    .option('--name <name>', 'how they are called')
    .addHelpText(
      'after',
      example('andromeda admin bootstrap --config andromeda.yaml --email ada@physics.example'),
    )
    .action(async (options: BootstrapOptions) => finish(await server.bootstrap(options, newPassword)));
  addKey(admin, server, finish);
  addSecrets(admin, server, finish);
  addAcceptBreak(trail, server, finish);
}
