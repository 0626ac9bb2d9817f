/** What the operator's pages tell people to type, and to put into files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const programs = ['andromeda', 'curl', 'install', 'journalctl', 'runuser', 'sha256sum', 'systemctl'];

export interface Page {
  /** The lines of shell, in order. */
  commands: string[];
  /** The blocks that are YAML. */
  settings: string[];
  text: string;
}

export function readPage(name: string): Page {
  const text = readFileSync(join(root, 'docs', name), 'utf8');
  const blocks = [...text.matchAll(/(?:^ {4}.*\n(?:\n(?= {4}))?)+/gm)].map(([block]) =>
    block.replace(/^ {4}/gm, '').trimEnd(),
  );
  const isShell = (block: string) => programs.includes(block.split(' ')[0] ?? '');
  return {
    text,
    commands: blocks.filter(isShell).flatMap((block) => block.split('\n')),
    settings: blocks.filter((block) => /^[a-z]\w*:(\n| )/i.test(block) && !isShell(block)),
  };
}
