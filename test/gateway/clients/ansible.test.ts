/** Some commands as Ansible sends them; many are in ansible.full.test.ts. */
import { testCommands } from './commands.ts';

testCommands(40);
