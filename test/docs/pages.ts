/** What the operator's pages tell people to type, and to put into files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const programs = ['andromeda', 'curl', 'install', 'journalctl', 'runuser', 'sha256sum', 'systemctl'];

export interface Page {
  /** What is typed or put into files, each block on its own. */
  blocks: string[];
  /** The lines of shell, in order. */
  commands: string[];
  /** The blocks that are YAML. */
  settings: string[];
  text: string;
}

/** A page of docs/, or the section of it below one heading. */
export function readPage(name: string, heading?: string): Page {
  const page = readFileSync(join(root, 'docs', name), 'utf8');
  const text = heading === undefined ? page : sectionOf(page, heading);
  const blocks = [...text.matchAll(/(?:^ {4}.*\n(?:\n(?= {4}))?)+/gm)].map(([block]) =>
    block.replaceAll(new RegExp(`^ {${block.search(/\S/)}}`, 'gm'), '').trimEnd(),
  );
  const isShell = (block: string) => programs.includes(block.split(' ')[0] ?? '');
  return {
    text,
    blocks,
    commands: blocks.filter(isShell).flatMap((block) => block.split('\n')),
    settings: blocks.filter((block) => /^[a-z]\w*:(\n| )/i.test(block) && !isShell(block)),
  };
}

function sectionOf(page: string, heading: string): string {
  const parts = page.split(/^(?=#{1,4} )/m);
  const start = parts.findIndex((part) => part.replace(/^#+ /, '').startsWith(`${heading}\n`));
  if (start < 0) throw new Error(`There is no heading "${heading}" on the page.`);
  const level = levelOf(parts[start]);
  const end = parts.findIndex((part, index) => index > start && levelOf(part) <= level);
  return parts.slice(start, end < 0 ? undefined : end).join('');
}

const levelOf = (part = '') => part.indexOf(' ');
