/** The schema's steps, in order. Forward only; a released step is never edited. */
import type { Migration } from 'kysely/migration';
import { firstSchema } from './0001-first-schema.ts';

export const migrations: Record<string, Migration> = {
  '0001-first-schema': firstSchema,
};
