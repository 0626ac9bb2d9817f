/** The permission catalog. */
import { fullCatalog, permissionProfiles } from '../../domain/access/permission.ts';
import type { BusinessReply } from './operation.ts';

/** Every permission with what it includes, and the named presets; the same for everyone. */
export async function listPermissionProfiles(): Promise<BusinessReply<'listPermissionProfiles'>> {
  return {
    permissions: fullCatalog.map(({ implies, ...permission }) => ({ ...permission, implies: [...implies] })),
    profiles: permissionProfiles.map(({ permissions, ...profile }) => ({
      ...profile,
      permissions: [...permissions],
    })),
  };
}
