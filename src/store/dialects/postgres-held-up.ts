/**
 * What a lock in the database, or its own slowness, holds up: a statement that ended by a timeout is not asked again for a
 * moment, and then by one at a time. Whoever asks it meanwhile is refused at once, so that a table that somebody has locked
 * takes one connection, and not each of them for as long as a timeout.
 */
import { PostgresError } from './postgres-fault.ts';

/** After so long, one asks whether it still is held up. */
const restMs = 1_000;
/** More than there are statements about a table; what does not fit is found out again. */
const most = 500;

export class HeldUp {
  /** Statements, without how long their lists are. */
  readonly #shapes = new Set<string>();
  #isAttempted = false;
  #retryAt = 0;

  async run<T>(sql: string, ask: () => Promise<T>): Promise<T> {
    const known = this.#shapes.size > 0 ? this.#find(sql) : undefined;
    if (known !== undefined) this.#beginAttempt();
    try {
      const answer = await ask();
      if (known !== undefined) this.#forget(known);
      return answer;
    } catch (error) {
      if (isHeldUp(error)) this.#remember(sql);
      throw error;
    } finally {
      if (known !== undefined) this.#isAttempted = false;
    }
  }

  #find(sql: string): string | undefined {
    const shape = shapeOf(sql);
    return this.#shapes.has(shape) ? shape : undefined;
  }

  #beginAttempt(): void {
    if (this.#isAttempted || performance.now() < this.#retryAt)
      throw new PostgresError('what it needs was held up a moment ago', { sqlState: '55P03', isLost: false });
    this.#isAttempted = true;
  }

  /** The next one may be tried at once: what one waited for is there, for the most part for all. */
  #forget(shape: string): void {
    this.#shapes.delete(shape);
    this.#retryAt = 0;
  }

  #remember(sql: string): void {
    if (this.#shapes.size >= most) this.#shapes.clear();
    this.#shapes.add(shapeOf(sql));
    this.#retryAt = performance.now() + restMs;
  }
}

function shapeOf(sql: string): string {
  return sql.replaceAll(/\(\$\d+(?:, \$\d+)*\)/g, '()');
}

/** Whether a statement was given up for a lock that it waited for, or because it took too long. */
export function isHeldUp(error: unknown): boolean {
  return error instanceof PostgresError && (error.sqlState === '55P03' || error.sqlState === '57014');
}
