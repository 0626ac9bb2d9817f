/** What is different on other systems than this one, by what is asked for there. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findBrowser } from '../../src/cli/commands/auth.ts';
import { quoted } from '../../src/cli/everyday/ssh-host.ts';
import { isHeldOnWindows } from '../../src/cli/files.ts';
import { differenceNotice } from '../../src/cli/net/discovery.ts';
import { stateDirectory } from '../../src/cli/session/local-state.ts';

test('the session is kept where the system keeps what is local', () => {
  const local = { LOCALAPPDATA: 'C:\\Users\\Ada\\AppData\\Local' };
  assert.equal(stateDirectory(local, 'win32'), 'C:\\Users\\Ada\\AppData\\Local\\andromeda');
  const moved = { ...local, XDG_STATE_HOME: 'D:\\state' };
  assert.equal(stateDirectory(moved, 'win32'), 'D:\\state\\andromeda');
  assert.equal(stateDirectory({ XDG_STATE_HOME: '/state' }, 'linux'), '/state/andromeda');
  assert.match(stateDirectory({ LOCALAPPDATA: 'C:\\x' }, 'darwin'), /\/\.local\/state\/andromeda$/);
});

test('a page is opened by what the system has for it', () => {
  assert.deepEqual(findBrowser({}, 'win32'), ['rundll32.exe', 'url.dll,FileProtocolHandler']);
  assert.deepEqual(findBrowser({}, 'darwin'), ['open']);
  assert.equal(findBrowser({}, 'linux'), undefined);
  for (const system of ['linux', 'darwin', 'win32'] as const)
    assert.deepEqual(findBrowser({ BROWSER: 'lynx' }, system), ['lynx']);
});

test('paths for ssh are written as every version of it reads them', () => {
  assert.equal(
    quoted('C:\\Users\\Ada Lovelace\\known_hosts', 'win32'),
    '"C:/Users/Ada Lovelace/known_hosts"',
  );
  assert.equal(quoted('/home/a"b\\c%d', 'linux'), '"/home/a\\"b\\\\c%%d"');
});

test('a file that another program has open is tried again on Windows alone', () => {
  for (const code of ['EPERM', 'EACCES', 'EBUSY']) {
    const error = Object.assign(new Error('held'), { code });
    assert.deepEqual([isHeldOnWindows(error, 'win32'), isHeldOnWindows(error, 'linux')], [true, false], code);
  }
  assert.equal(isHeldOnWindows(Object.assign(new Error('full'), { code: 'ENOSPC' }), 'win32'), false);
});

test('a client of another version learns how to get the right one', () => {
  const notice = (platform: NodeJS.Platform) =>
    differenceNotice('https://lab.example', '2.0.0', { own: '1.0.0', platform }) ?? '';
  assert.match(
    notice('linux'),
    /^This client is 1\.0\.0, and the service .* is 2\.0\.0\. `curl -fsSL .*install\.sh \| sh`/,
  );
  assert.match(notice('win32'), /`irm https:\/\/lab\.example\/install\.ps1 \| iex`/);
  assert.equal(differenceNotice('https://lab.example', '1.0.0', { own: '1.0.0' }), undefined);
  assert.equal(differenceNotice('https://lab.example', undefined, { own: '1.0.0' }), undefined);
});
