/** Questions to the service of a configuration: whether it serves, and that it takes up its settings. */
import { DomainError } from '../../domain/error.ts';
import { readConfig } from '../config/index.ts';
import { askReadiness } from './readiness.ts';
import { askForReload } from './reload.ts';
import { runCommand } from './run-command.ts';

/** `andromeda service ready`, for a container's health check. Resolves to the exit status: 0 where it serves, else 1 with a sentence. */
export async function askService({ config }: { config: string }): Promise<number> {
  return runCommand(async () => {
    const { business } = readConfig(config);
    const answer = await askReadiness(business);
    const address = `${business.listen.host}:${business.listen.port}`;
    if (!answer) throw new DomainError('service_unavailable', `No service of ours answers at ${address}.`);
    if (answer.obstacle !== undefined) throw new DomainError('service_unavailable', answer.obstacle);
    return 'The service serves.\n';
  });
}

/** `andromeda service reload`. Resolves to the exit status when the service has the settings, or has refused them: then 1. */
export async function reloadService({ config }: { config: string }): Promise<number> {
  return runCommand(async () => {
    const refusal = await askForReload(readConfig(config).dataDir);
    if (refusal !== undefined) throw new DomainError('invalid_state', `Not reloaded: ${refusal}`);
    return `The service goes on with ${config}.\n`;
  });
}
