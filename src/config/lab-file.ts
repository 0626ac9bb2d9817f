/** Reading a lab file (`lab.yaml`), whose shape is the one that the operator API takes. */
import { dirname, resolve } from 'node:path';
import { DomainError } from '../domain/error.ts';
import { checkLab, type Lab } from '../domain/lab.ts';
import { withLabPaths } from '../domain/lab-paths.ts';
import { planLab } from '../domain/lab-plan.ts';
import { loadDocument } from '../http/document.ts';
import { readSettings } from './settings-file.ts';

/** The lab a file describes. Throws `invalid_request` with a sentence that names the file and the fault. */
export function readLab(file: string): Lab {
  const { components } = loadDocument('business');
  const written = readSettings<Lab>(file, { ...components?.schemas?.['Lab'], components });
  const lab = withLabPaths(written, (path) => resolve(dirname(file), path));
  try {
    checkLab(lab);
    planLab({}, lab, { prune: false, now: Date.now() });
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    throw new DomainError(error.code, `${file}: ${error.message}`);
  }
  return lab;
}
