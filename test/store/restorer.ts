/** Restores a backup; says so first, to whoever means to end it meanwhile. */
import { writeSync } from 'node:fs';
import { restoreBackup } from '../../src/store/data-dir/restore.ts';

const [file = '', dataDir = ''] = process.argv.slice(2);
writeSync(1, 'begins\n');
restoreBackup(file, dataDir, new Date().toISOString());
