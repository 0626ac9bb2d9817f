/** What `check` and `doctor` say of keys that the service used and that are gone, without which it does not start. */
import { keyKinds } from '../../domain/key-rotation.ts';
import { listMissingKeys, missingKeyText } from '../../store/data-dir/keys-in-use.ts';
import { isDatabaseError } from '../../store/engine/engine.ts';
import type { Config } from '../config/index.ts';
import { type Finding, wrong } from './checks/findings.ts';

export type KeyConfig = { identity?: Config['identity'] | undefined; database?: string | undefined };

export function* checkMissingKeys(
  dataDir: string,
  { identity, unchanged }: Pick<KeyConfig, 'identity'> & { unchanged: boolean },
): Generator<Finding> {
  const kinds = keyKinds.filter((kind) => kind !== 'issuer' || identity?.issuer === undefined);
  try {
    for (const missing of listMissingKeys(dataDir, [...kinds, 'audit'], { unchanged }))
      yield wrong('key', missingKeyText(missing));
  } catch (error) {
    // Another check reports faults of the database.
    if (!isDatabaseError(error)) throw error;
  }
}
