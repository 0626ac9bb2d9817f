/** Reads a lab file (`lab.yaml`), which has the format of the operator API. */
import { dirname, resolve } from 'node:path';
import { loadDocument } from '../../api/http/document.ts';
import { checkLab, type Lab, type WrittenLab } from '../../domain/clusters/lab.ts';
import { LabError } from '../../domain/clusters/lab-member.ts';
import { withLabPaths } from '../../domain/clusters/lab-paths.ts';
import { planLab } from '../../domain/clusters/lab-plan.ts';
import { DomainError } from '../../domain/error.ts';
import { lineOf } from '../../lib/yaml-lines.ts';
import { readSettings, readText } from './settings-file.ts';

/** The lab of a file. Throws `invalid_request` with a sentence that names the file, its line and the fault. */
export function readLab(file: string): Lab {
  const { components } = loadDocument('business');
  const written = readSettings<WrittenLab>(file, { ...components?.schemas?.['Lab'], components });
  const given = withLabPaths(written, (path) => resolve(dirname(file), path));
  try {
    const lab = checkLab(given);
    planLab({}, lab, { prune: false, now: Date.now() });
    return lab;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const at = error instanceof LabError ? error.at : [];
    throw new DomainError(error.code, `${lineOf(file, readText(file), at)}: ${error.message}`);
  }
}
