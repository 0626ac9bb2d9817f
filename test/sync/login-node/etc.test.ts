/** A login node's copy of /etc, while accounts of the machine are edited. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../../support/directory.ts';

const skip = process.getuid?.() === 0 ? false : 'only root may have an /etc of its own';
const homes = join(import.meta.dirname, '../../../src/sync/simulated/login-node/homes.ts');

/** An /etc and a /home that nothing outside sees; files of `lckpwdf` and `vipw` come and go in the first. */
const script = `set -e
mkdir "$1/etc" "$1/home"
cp /etc/passwd /etc/group "$1/etc"
mount --bind "$1/etc" /etc; mount --bind "$1/home" /home
for name in passwd.lock group.lock shadow.4711 group+; do
  while [ -d "$1/home" ]; do : > "$1/etc/$name"; rm -f "$1/etc/$name"; done & others="$others $!"
done
trap 'kill $others; wait' EXIT
"$2" --input-type=module -e "import { execFileSync } from 'node:child_process'; import { copyEtc } from '$3';
for (let time = 0; time < 8; time++) { copyEtc(); execFileSync('umount', ['/etc']); }"
`;

test('files that come and go meanwhile do not end the copy', { skip }, async () => {
  using directory = temporaryDirectory();
  const args = ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', directory.path];
  const { stderr } = await promisify(execFile)('unshare', [...args, process.execPath, homes]);
  assert.equal(stderr, '');
});
