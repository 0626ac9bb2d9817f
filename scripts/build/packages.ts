/** The packages that an artifact is made of, as keys of package-lock.json. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleClient } from './client.ts';
import { bundlePages } from './console.ts';
import { packagesIn } from './notices.ts';

/** Of the server on a platform (in Node's words): its own, and those of the pages and the client that it hands out. */
export async function packagesOfServer(root: string, platform: string): Promise<string[]> {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const own = Object.entries<{ dev?: boolean }>(packages).flatMap(([path, { dev }]) => {
    const prebuiltFor = /-(linux-\w+?)(?:-gnu|-musl)?$/.exec(path)?.[1];
    // Optional packages are listed also where they were not installed.
    const isIn = prebuiltFor
      ? prebuiltFor === platform && !path.endsWith('-musl')
      : existsSync(join(root, path));
    return path !== '' && !dev && isIn ? [path] : [];
  });
  const { metafile } = await bundlePages(root);
  return [...new Set([...own, ...packagesIn(metafile), ...(await packagesOfClient(root))])];
}

export async function packagesOfClient(root: string): Promise<string[]> {
  return packagesIn((await bundleClient(root)).metafile);
}
