/**
 * Both documents, as a generator of requests reads them (schemathesis, of PyPI): what they allow is not called malformed, what they do
 * not allow is, and no answer is another than they say.
 */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { physics, startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';

const program = process.env['SCHEMATHESIS'] ?? 'schemathesis';
const isHere = spawnSync(program, ['--version']).status === 0;
const seconds = Number(process.env['SCHEMATHESIS_SECONDS'] ?? 60);

/** Of which no schema says what is taken: a format of its own, names of a catalogue, or a token of the page before. */
const beyondSchemas = {
  business: [
    ...['registerSshKey', 'registerSshKeyForOrganization', 'setLoginPreferences', 'operatorCreateCluster'],
    ...['addMember', 'setMemberPermissions', 'requestAccess'],
  ],
  platform: [
    ...['setSchedulerConfiguration', 'setDefaultSchedulerConfiguration', 'checkSchedulerConfiguration'],
    ...['listClusters', 'listMachines'],
  ],
};
/** What other tests prove, or what is about an order of requests. */
const notHere = ['unsupported_method', 'ignored_auth', 'use_after_free', 'ensure_resource_availability'];

function configurationOf(api: keyof typeof beyondSchemas): string {
  const operations = beyondSchemas[api].map(
    (id) => `[[operations]]
include-operation-id = "${id}"
checks.positive_data_acceptance.enabled = false`,
  );
  const without = notHere.map((check) => `checks.${check}.enabled = false`);
  return [...without, ...operations].join('\n');
}

function run(
  file: string,
  url: string,
  token: string,
): Promise<{ status: number | string | undefined; out: string }> {
  const args = [
    '--config-file',
    file,
    'run',
    `${url}/openapi.json`,
    '--url',
    url,
    '--max-time',
    String(seconds),
    '--no-color',
  ];
  const more = ['-H', `Authorization: Bearer ${token}`, '--phases', 'coverage,fuzzing'];
  return new Promise((done) => {
    execFile(program, [...args, ...more], { cwd: dirname(file), maxBuffer: 2 ** 28 }, (error, out, err) =>
      done({ status: error ? (error.code ?? 'none') : 0, out: out + err }),
    );
  });
}

for (const api of ['business', 'platform'] as const)
  test(`a generator of requests finds nothing that the ${api} API does against its document`, {
    skip: !isHere && 'schemathesis is not here: pip install schemathesis, or name it in SCHEMATHESIS',
  }, async () => {
    const organizations = physics.organizations?.map((one) => ({
      ...one,
      members: [...(one.members ?? []), { email: 'root@physics.example', role: 'owner' as const }],
    }));
    await using service = await startTestApp({
      lab: { ...physics, ...(organizations && { organizations }) },
    });
    const token = await service.issuer.token('root', {}, 3_600);
    const url = api === 'business' ? service.businessUrl : service.platformUrl;
    using directory = temporaryDirectory();
    const file = join(directory.path, 'schemathesis.toml');
    writeFileSync(file, configurationOf(api));
    const { status, out } = await run(file, url, token);
    assert.equal(status, 0, out);
  });
