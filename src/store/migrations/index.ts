/** The schema's steps, in order. Forward only; a released step is never edited. */
import type { Migration } from 'kysely/migration';
import { firstSchema, operators } from './0001-0002.ts';
import {
  auditGrows,
  auditHeads,
  auditPositionHashes,
  boundPermissions,
  oneListAnOrganization,
  openSessions,
  passwordGenerations,
  reportsBySide,
  retention,
  signIns,
  slurmConfigurations,
} from './0003-0013.ts';
import {
  accessRequests,
  consoleFiles,
  consoleSessions,
  endedReservations,
  memberVersions,
  pastSessions,
  secrets,
  servers,
  sessionsOfServers,
  slurmConfigurationVersions,
  whatServersSay,
} from './0014-0027.ts';
import { fewerIndexes, gpuDays, jobsOfSessions, keyLabels, signInWindows } from './0028-0032.ts';
import { groups } from './0033.ts';
import { memberHistory } from './0034.ts';
import { memberReviews, scim } from './0035-0036.ts';

export const migrations: Record<string, Migration> = {
  '0001-first-schema': firstSchema,
  '0002-operators': operators,
  '0003-one-list-an-organization': oneListAnOrganization,
  '0004-slurm-configurations': slurmConfigurations,
  '0005-audit-grows': auditGrows,
  '0006-open-sessions': openSessions,
  '0007-audit-heads': auditHeads,
  '0008-reports-by-side': reportsBySide,
  '0009-bound-permissions': boundPermissions,
  '0010-password-generations': passwordGenerations,
  '0011-sign-ins': signIns,
  '0012-audit-position-hashes': auditPositionHashes,
  '0013-retention': retention,
  '0014-console-sessions': consoleSessions,
  '0015-access-requests': accessRequests,
  '0016-slurm-configuration-versions': slurmConfigurationVersions,
  '0019-past-sessions': pastSessions,
  '0020-member-versions': memberVersions,
  '0022-servers': servers,
  '0023-secrets': secrets,
  '0024-sessions-of-servers': sessionsOfServers,
  '0025-console-files': consoleFiles,
  '0026-what-servers-say': whatServersSay,
  '0027-ended-reservations': endedReservations,
  '0028-fewer-indexes': fewerIndexes,
  '0029-key-labels': keyLabels,
  '0030-jobs-of-sessions': jobsOfSessions,
  '0031-gpu-days': gpuDays,
  '0032-sign-in-windows': signInWindows,
  '0033-groups': groups,
  '0034-member-history': memberHistory,
  '0035-scim': scim,
  '0036-member-reviews': memberReviews,
};

/**
 * The last step of the oldest program that works with this schema. In a rolling upgrade, servers of the previous version run
 * alongside those of this one, so each step only adds: tables, columns that may be null or have a default, indexes. What only
 * an older program needs is removed one version later, and this is then raised to the last step of the version between.

 */
export const oldestServed = '0024-sessions-of-servers';
