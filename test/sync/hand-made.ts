/** A Slurm side in memory that does as it is told, and can be told to fail or to hang. */
import { once } from 'node:events';
import type { Manifest, SlurmReport } from '../../src/domain/access/manifest.ts';
import type { SlurmDriver } from '../../src/sync/index.ts';
import { slurmReport } from '../support/store.ts';

export class HandMade implements SlurmDriver {
  readonly gatherMs = 0;
  report = slurmReport({
    desiredGeneration: 0,
    machines: ['n1', 'n2', 'n3'].map((name) => ({ name, ready: true, phase: 'idle' })),
  });
  applied: Manifest[] = [];
  observed = 0;
  readonly observedAt: number[] = [];
  closed = 0;
  released = 0;
  followsSettings = false;
  observeFault = '';
  applyFault = '';
  releaseFault = '';
  hanging = false;
  /** What is applied changes nothing there. */
  refusing = false;
  /** What applying waits for. */
  slow: Promise<void> | undefined;
  /** The first applying ends when something newer is wanted. */
  makingWay = false;
  /** So does the first look. */
  lookingAway = false;

  async observe(signal: AbortSignal, superseded = signal): Promise<SlurmReport> {
    this.observed++;
    this.observedAt.push(Date.now());
    if (this.lookingAway && this.observed === 1 && !superseded.aborted) await once(superseded, 'abort');
    if (this.observeFault) throw new Error(this.observeFault);
    if (this.hanging) {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    }
    return structuredClone(this.report);
  }

  async apply(manifest: Manifest, _signal: AbortSignal, superseded?: AbortSignal): Promise<void> {
    this.applied.push(manifest);
    await this.slow;
    if (this.makingWay && this.applied.length === 1 && superseded?.aborted === false)
      await once(superseded, 'abort');
    if (this.applyFault) throw new Error(this.applyFault);
    if (this.refusing) return;
    const { generation, desiredGeneration } = manifest;
    const accounts = [...manifest.accounts];
    this.report = { ...this.report, manifestGeneration: generation, desiredGeneration, accounts };
  }

  async release(): Promise<void> {
    if (this.releaseFault) throw new Error(this.releaseFault);
    this.released++;
  }

  async close(): Promise<void> {
    this.closed++;
  }
}
