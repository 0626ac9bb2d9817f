/**
 * Loaded before the service (`node --import`): kills it (SIGKILL) at one point of a Business write. The file that ANDROMEDA_KILL_AT names
 * says which: `commit`, when all is written but the commit; `answer`, when it is on disk and nothing is answered.
 */
import { readFileSync } from 'node:fs';
import { ServerResponse } from 'node:http';
import Database from 'better-sqlite3';

const file = process.env['ANDROMEDA_KILL_AT'] ?? '';
let isCommand = false;

function dieAt(point: string): void {
  if (readFileSync(file, 'utf8') === point) process.kill(process.pid, 'SIGKILL');
}

/** Notes what a statement is for before it runs. */
function watch(sql: string): void {
  if (/^insert into "commands"/i.test(sql)) isCommand = true;
  if (!/^\s*(commit|rollback)/i.test(sql)) return;
  if (isCommand && /commit/i.test(sql)) dieAt('commit');
  isCommand = false;
}

type Run = (...values: unknown[]) => unknown;
const { exec, prepare } = Database.prototype;
Object.assign(Database.prototype, {
  exec(this: Database.Database, sql: string) {
    watch(sql);
    return exec.call(this, sql);
  },
  prepare(this: Database.Database, sql: string) {
    const statement = prepare.call(this, sql) as unknown as Record<'run' | 'all', Run>;
    if (!/^\s*(insert into "commands"|commit|rollback)/i.test(sql)) return statement;
    for (const name of ['run', 'all'] as const) {
      const original = statement[name];
      statement[name] = (...values) => {
        watch(sql);
        return original.apply(statement, values);
      };
    }
    return statement;
  },
});

const { end } = ServerResponse.prototype;
ServerResponse.prototype.end = function (this: ServerResponse, ...rest: unknown[]) {
  const isWrite = this.req.method === 'POST' && /ssh-keys/.test(this.req.url ?? '');
  if (isWrite) dieAt('answer');
  return end.apply(this, rest as Parameters<typeof end>);
} as typeof end;
