/** What is read of a cluster's Slurm configuration, and the check of one that is typed. */
import { useEffect, useState } from 'react';
import type { components } from '../../../api/generated/platform.ts';
import { ApiError, bodyOf, bodyOrNull, goToSignIn, isSignedOut, NoAnswer, platform } from '../api.ts';
import { read } from '../reads.ts';
import type { Configuration } from './text.ts';

export type Check = components['schemas']['SlurmConfigurationCheck'];
export type Status = components['schemas']['SlurmConfigurationStatus'];
export type Version = components['schemas']['SlurmConfigurationVersion'];

/** The configuration that stands, with its number. */
export interface Stored {
  generation: number;
  configuration: Configuration;
}

const path = '/clusters/{clusterId}/scheduler-configuration';

function about(clusterId: string, businessOrgId: string) {
  return { path: { clusterId }, query: { businessOrgId } };
}

function keyOf(clusterId: string, ...rest: (string | number)[]) {
  return ['slurm', clusterId, ...rest];
}

const topicsOf = (clusterId: string) => [`cluster/${clusterId}`, 'me'];

export const readStored = (clusterId: string, orgID: string) =>
  read(keyOf(clusterId, 'stored', orgID), topicsOf(clusterId), async (): Promise<Stored> => {
    const answer = await platform.GET(path, { params: about(clusterId, orgID) });
    return { configuration: bodyOf(answer), generation: generationOf(answer.response) };
  });

/** From the entity tag. */
export function generationOf(response: Response): number {
  return Number(/^"(\d+)"$/.exec(response.headers.get('etag') ?? '')?.[1] ?? 0);
}

export const readStatus = (clusterId: string, orgID: string) =>
  read(keyOf(clusterId, 'status', orgID), topicsOf(clusterId), () =>
    platform.GET(`${path}/status`, { params: about(clusterId, orgID) }).then(bodyOf),
  );

export const readVersions = (clusterId: string, orgID: string) =>
  read(keyOf(clusterId, 'versions', orgID), topicsOf(clusterId), async () => {
    const answer = await platform.GET(`${path}/versions`, { params: about(clusterId, orgID) });
    return bodyOf(answer).items;
  });

/** Number 0 is that nothing was ever set. What it says does not change; null where it is not kept. */
export const readVersion = (clusterId: string, orgID: string, generation: number) =>
  read(keyOf(clusterId, 'version', orgID, generation), [], async (): Promise<Configuration | null> => {
    if (generation === 0) return {};
    const { query, path: named } = about(clusterId, orgID);
    const params = { path: { ...named, generation: String(generation) }, query };
    return bodyOrNull(await platform.GET(`${path}/versions/{generation}`, { params }), 404);
  });

const typingMs = 500;
const againMs = 1_500;

/** What a configuration would come to, asked for when nothing was typed for a moment. */
export function useCheck(
  clusterId: string,
  orgID: string,
  configuration: Configuration | undefined,
  generation: number,
): { check: Check | undefined; error: Error | undefined } {
  const [answer, setAnswer] = useState<{ of: Configuration; check?: Check; error?: Error }>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: against another number the answer is another
  useEffect(() => {
    if (!configuration) return;
    const stopping = new AbortController();
    const { signal } = stopping;
    const ask = async () => {
      const params = about(clusterId, orgID);
      try {
        const body = bodyOf(await platform.POST(`${path}/check`, { params, body: configuration, signal }));
        setAnswer({ of: configuration, check: body });
      } catch (error) {
        if (signal.aborted) return;
        const isLater = error instanceof NoAnswer || (error instanceof ApiError && error.status >= 500);
        if (isSignedOut(error)) goToSignIn();
        else if (isLater) timer = setTimeout(() => void ask(), againMs);
        else setAnswer({ of: configuration, error: error as Error });
      }
    };
    let timer = setTimeout(() => void ask(), typingMs);
    return () => {
      stopping.abort();
      clearTimeout(timer);
    };
  }, [clusterId, orgID, configuration, generation]);
  const isOfThis = answer !== undefined && answer.of === configuration;
  return { check: isOfThis ? answer.check : undefined, error: isOfThis ? answer.error : undefined };
}
