/** The permission catalog. */
import { fullCatalog, permissionProfiles } from '../../domain/access/permission.ts';
import type { Operation } from './operation.ts';

/** Every permission with what it includes, and the named presets; the same for everyone. */
export const listPermissionProfiles: Operation<'listPermissionProfiles'> = async () => ({
  permissions: fullCatalog.map(({ implies, ...permission }) => ({ ...permission, implies: [...implies] })),
  profiles: permissionProfiles.map(({ permissions, ...profile }) => ({
    ...profile,
    permissions: [...permissions],
  })),
});
