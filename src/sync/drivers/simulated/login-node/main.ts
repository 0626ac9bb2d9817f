/**
 * Entry of the login node's processes. `serve`: the login node; everything it needs comes over IPC, and it lives no
 * longer than the server that started it. `sftp [uid gid]`: the built-in sftp server of one session.
 */
void run(process.argv.slice(2));

async function run([role, uid, gid]: string[]): Promise<void> {
  if (role === 'sftp') {
    const { serveSftp } = await import('./sftp-main.ts');
    serveSftp(uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) });
  } else {
    const { serveLoginNode } = await import('./serve.ts');
    serveLoginNode();
  }
}

// It exports nothing, but is a module.
export {};
