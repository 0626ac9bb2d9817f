/** The schema's steps, in order. Forward only; a released step is never edited. */
import type { Migration } from 'kysely/migration';
import { firstSchema } from './0001-first-schema.ts';
import { operators } from './0002-operators.ts';
import { oneListAnOrganization } from './0003-one-list-an-organization.ts';
import { slurmConfigurations } from './0004-slurm-configurations.ts';
import { auditGrows } from './0005-audit-grows.ts';
import { openSessions } from './0006-open-sessions.ts';
import { auditHeads } from './0007-audit-heads.ts';
import { reportsBySide } from './0008-reports-by-side.ts';
import { boundPermissions } from './0009-bound-permissions.ts';
import { passwordGenerations } from './0010-password-generations.ts';
import { signIns } from './0011-sign-ins.ts';
import { auditPositionHashes } from './0012-audit-position-hashes.ts';
import { retention } from './0013-retention.ts';
import { consoleSessions } from './0014-console-sessions.ts';
import { accessRequests } from './0015-access-requests.ts';
import { slurmConfigurationVersions } from './0016-slurm-configuration-versions.ts';
import { pastSessions } from './0019-past-sessions.ts';
import { memberVersions } from './0020-member-versions.ts';
import { servers } from './0022-servers.ts';
import { secrets } from './0023-secrets.ts';
import { sessionsOfServers } from './0024-sessions-of-servers.ts';
import { consoleFiles } from './0025-console-files.ts';
import { whatServersSay } from './0026-what-servers-say.ts';

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
};

/**
 * The last step of the oldest program that works with this schema. In a rolling upgrade, servers of the version before go on beside
 * those of this one, so that each step only adds: tables, columns that may be null or have a default, indexes. What an
 * older program needs goes one version later, and with that this is raised to the last step of the version between.
 */
export const oldestServed = '0024-sessions-of-servers';
