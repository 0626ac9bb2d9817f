/** A machine with Node, npm and git, as a slim image is: no compiler, no make, no Python. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../../scripts/packages/emulators.ts';

const programs = [
  'sh',
  'env',
  'bash',
  'npm',
  'git',
  'dirname',
  'readlink',
  'uname',
  'cat',
  'mkdir',
  'rm',
  'ln',
  'ssh-keygen',
];

/** Makes the folder of its programs, and answers the environment in which only those are found. `node`: the one that runs npm. */
export function withoutCompiler(folder: string, node: string): NodeJS.ProcessEnv {
  for (const name of programs) {
    const file = findProgram(name);
    if (file !== undefined) symlinkSync(file, join(folder, name));
  }
  symlinkSync(node, join(folder, 'node'));
  const { CC: _c, CXX: _cxx, npm_config_nodedir: _nodedir, ...rest } = process.env;
  return { ...rest, PATH: folder };
}
