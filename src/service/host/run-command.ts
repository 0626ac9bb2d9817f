/** How a command on the host itself ends: its output, or one sentence on stderr. */
import { DomainError } from '../../domain/error.ts';

/**
 * Runs a command and prints what it returns. Resolves to the exit status: 0, or 1 where it was refused or the system did not
 * let it, which is printed as one sentence. What else is thrown is a fault of the program, and is thrown on.
 */
export async function runCommand(command: () => Promise<string> | string): Promise<number> {
  try {
    process.stdout.write(await command());
    return 0;
  } catch (error) {
    if (!(error instanceof DomainError || (error instanceof Error && 'syscall' in error))) throw error;
    process.stderr.write(`andromeda: ${error.message}\n`);
    return 1;
  }
}
