/** `andromeda service ready`: whether the service of a configuration serves, for a container's health check. */
import { readConfig } from '../config/index.ts';
import { DomainError } from '../domain/error.ts';
import { askReadiness } from './readiness.ts';
import { runCommand } from './run-command.ts';

/** Resolves to the exit status: 0 where it serves, else 1 with a sentence. */
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
