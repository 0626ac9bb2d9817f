/** Reads of a cluster's Slurm configuration, and the check of one in the editor. */
import { queryOptions } from '@tanstack/react-query';
import type { components } from '../../../api/generated/platform.ts';
import { ApiError, bodyOf, bodyOrNull, NoAnswer, platform } from '../api.ts';
import { inside, read } from '../reads.ts';
import type { Configuration } from './text.ts';

export type Check = components['schemas']['SlurmConfigurationCheck'];
export type Status = components['schemas']['SlurmConfigurationStatus'];
export type Version = components['schemas']['SlurmConfigurationVersion'];

export interface Stored {
  generation: number;
  configuration: Configuration;
}

const path = '/clusters/{clusterId}/scheduler-configuration';

function keyOf(clusterId: string, ...rest: (string | number)[]) {
  return ['slurm', clusterId, ...rest];
}

const topicsOf = (clusterId: string) => [`cluster/${clusterId}`, 'me'];

export const readStored = (clusterId: string, orgID: string) =>
  read(keyOf(clusterId, 'stored', orgID), topicsOf(clusterId), async (): Promise<Stored> => {
    const answer = await platform.GET(path, inside(clusterId, orgID));
    return { configuration: bodyOf(answer), generation: generationOf(answer.response) };
  });

export function generationOf(response: Response): number {
  return Number(/^"(\d+)"$/.exec(response.headers.get('etag') ?? '')?.[1] ?? 0);
}

export const readStatus = (clusterId: string, orgID: string) =>
  read(keyOf(clusterId, 'status', orgID), topicsOf(clusterId), () =>
    platform.GET(`${path}/status`, inside(clusterId, orgID)).then(bodyOf),
  );

export const readVersions = (clusterId: string, orgID: string) =>
  read(keyOf(clusterId, 'versions', orgID), topicsOf(clusterId), async () => {
    const answer = await platform.GET(`${path}/versions`, inside(clusterId, orgID));
    return bodyOf(answer).items;
  });

/** A version, which never changes; null where it is no longer kept. Generation 0 is empty: no configuration was ever set. */
export const readVersion = (clusterId: string, orgID: string, generation: number) =>
  read(keyOf(clusterId, 'version', orgID, generation), [], async (): Promise<Configuration | null> => {
    if (generation === 0) return {};
    const { query, path: named } = inside(clusterId, orgID).params;
    const params = { path: { ...named, generation: String(generation) }, query };
    return bodyOrNull(await platform.GET(`${path}/versions/{generation}`, { params }), 404);
  });

/** Checks a configuration, whose text is in the key; retried until the server answers. */
export const readCheck = (
  clusterId: string,
  orgID: string,
  generation: number,
  text: string,
  body: Configuration | undefined,
) =>
  queryOptions({
    queryKey: keyOf(clusterId, 'check', orgID, generation, text),
    queryFn: async ({ signal }): Promise<Check> => {
      const options = { ...inside(clusterId, orgID), body: body ?? {}, signal };
      return bodyOf(await platform.POST(`${path}/check`, options));
    },
    enabled: body !== undefined,
    gcTime: 10_000,
    retry: (_, error) => error instanceof NoAnswer || (error instanceof ApiError && error.status >= 500),
    retryDelay: 1_500,
  });
