/** As many commands as a playbook for a large site sends. */
import { testCommands } from './commands.ts';

testCommands(500);
