/** Reading a lab file (`lab.yaml`). */
import { DomainError } from './domain/error.ts';
import { checkLab, type Lab } from './domain/lab.ts';
import { permissionCatalog } from './domain/permission.ts';
import { readSettings } from './settings-file.ts';

const text = { type: 'string', minLength: 1 };
const email = { type: 'string', pattern: '^[^@\\s]+@[^@\\s]+$' };
const count = { type: 'integer', minimum: 0, maximum: 10_000 };
const list = (items: object) => ({ type: 'array', items });
const section = (required: string[], properties: object) => ({
  type: 'object',
  additionalProperties: false,
  required,
  properties,
});

const schema = section([], {
  users: list(section(['email'], { email, name: text, staff: list(text) })),
  organizations: list(
    section(['slug', 'name'], {
      slug: { type: 'string', pattern: '^[a-z][a-z0-9-]{0,62}$' },
      name: text,
      autoJoinDomains: list({ type: 'string', pattern: '^[a-zA-Z0-9.-]+$' }),
      members: list(
        section(['email', 'role'], {
          email,
          role: { type: 'string', enum: ['owner', 'admin', 'member'] },
          username: text,
          permissions: list({ type: 'string', enum: permissionCatalog.map(({ key }) => key) }),
        }),
      ),
    }),
  ),
  clusters: list(
    section(['name', 'organization'], {
      name: { type: 'string', pattern: '^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$' },
      id: text,
      organization: text,
      site: section(['id', 'name'], { id: text, name: text }),
      scheduler: { type: 'string', enum: ['sunk', 'kubernetes'] },
      simulated: section(['computeNodes', 'gpusPerNode'], {
        computeNodes: count,
        gpusPerNode: count,
        applyMs: { type: 'integer', minimum: 0, maximum: 600_000 },
      }),
      slurm: { type: 'object' },
      kubernetes: { type: 'object' },
    }),
  ),
  grants: list(
    section(['user', 'cluster', 'relation'], {
      user: email,
      cluster: text,
      relation: { type: 'string', enum: ['kubernetes.viewer', 'kubernetes.developer', 'kubernetes.admin'] },
      namespace: text,
      roleId: text,
      expiresAt: text,
    }),
  ),
});

/** The lab a file describes. Throws `invalid_request` with a sentence that names the file and the fault. */
export function readLab(file: string): Lab {
  const lab = readSettings<Lab>(file, schema);
  try {
    checkLab(lab);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    throw new DomainError(error.code, `${file}: ${error.message}`);
  }
  return lab;
}
