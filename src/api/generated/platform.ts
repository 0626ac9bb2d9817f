// Made by `npm run generate` from the YAML documents in openapi/. Edit those.

export interface paths {
    "/.well-known/oauth-protected-resource": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where tokens come from, and what must be in them (RFC 9728) */
        get: operations["getProtectedResource"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The clusters of an organization that you can see
         * @description With `clusters.read`, all of them; without it, those on which you hold a live Kubernetes grant. Ordered by
         *     ID, a page at a time.
         */
        get: operations["listClusters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters/{clusterId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One cluster */
        get: operations["getCluster"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters/{clusterId}/ssh-access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How to log in over SSH, and whether that works now
         * @description Answers 200 even when it does not work yet; `reason` says what is missing. Needs `clusters.ssh`. `ready` means that
         *     the gateway admits every active key of the caller at this moment; with `keyFingerprint`, that it admits that key.
         */
        get: operations["getSshAccess"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters/{clusterId}/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What a cluster is set up with, whether that works, and what can be bought for it
         * @description From the cluster's latest report. Without one in the last two minutes, `state` is `unknown` and what the cluster
         *     has is left out.
         */
        get: operations["getClusterOptions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters/{clusterId}/machines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The machines of a cluster
         * @description Ordered by ID, a page at a time. Machines that the cluster no longer has are not listed.
         */
        get: operations["listMachines"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters/{clusterId}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How many GPUs of a cluster are free
         * @description As the cluster reported last. A GPU is held by a job or a pod (`in_use`), free, away with a machine that takes no work, or of unknown use: where the cluster does not say what is held, and where its report is old.
         */
        get: operations["getClusterUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/gpu-hours": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * GPU time by person and day
         * @description Of every Slurm cluster of the organization, in days of UTC, at most ten minutes old: from Slurm's accounting (`sacct`), or where there is none from the jobs that its reports named. A member sees everyone's unless Slurm's PrivateData has usage; owners, admins and staff see all.
         */
        get: operations["listGpuHours"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How many GPUs of several clusters are free
         * @description Each as `getClusterUsage` answers. A cluster that you do not see is left out.
         */
        get: operations["listClusterUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters/{clusterId}/kubeconfig": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A kubeconfig for the cluster
         * @description Needs `clusters.kubernetes`, or a live grant on the cluster or one of its namespaces. The file holds no
         *     credential: kubectl signs you in with the plugin oidc-login when it first needs to.
         */
        get: operations["getKubeconfig"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters/{clusterId}/scheduler-configuration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A cluster's Slurm configuration
         * @description Needs `clusters.configure`. A field that was never set is left out. `ETag` is its number
         *     (`spec.schedulerGeneration`), for `If-Match` of a PUT.
         */
        get: operations["getSchedulerConfiguration"];
        /**
         * Replace a cluster's Slurm configuration
         * @description Needs `clusters.configure`. The whole of it: a field that is left out is cleared. Applying it closes the open SSH
         *     sessions on the cluster, and a new `computeS6Packages` restarts every compute node and ends the jobs there; the
         *     configuration that stands already changes nothing, and is tried again where the cluster refused it. A cluster that is
         *     not provisioning or active is 409.
         *
         *     The headers may be left out. `If-Match` with the `ETag` of the configuration that was edited refuses (412
         *     `precondition_failed`) what would undo another person's change; `Audit-Reason` is kept in the audit trail and shown in
         *     the history; `Idempotency-Key` counts next to `If-Match` only: the same request is then answered as the first one was.
         */
        put: operations["setSchedulerConfiguration"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters/{clusterId}/scheduler-configuration/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * What a Slurm configuration would come to, if it were set
         * @description Needs `clusters.configure`, and changes nothing. Every rule that it breaks, how it differs from the one that
         *     stands, and what applying it restarts. What Slurm itself thinks of it is found out on the cluster, on trial, when it is set.
         *     A person may ask 20 times at once, then twice a second; more is 503.
         */
        post: operations["checkSchedulerConfiguration"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters/{clusterId}/scheduler-configuration/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How far the Slurm configuration has come on the cluster
         * @description Needs `clusters.configure`. From what the cluster reported last.
         */
        get: operations["getSchedulerConfigurationStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters/{clusterId}/scheduler-configuration/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The Slurm configurations that a cluster was given
         * @description Needs `clusters.configure`. Newest first: who set each, when, why, and what it changed. The last 100 are kept, of at
         *     most 16 MiB together.
         */
        get: operations["listSchedulerConfigurationVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clusters/{clusterId}/scheduler-configuration/versions/{generation}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A Slurm configuration that a cluster was given
         * @description Needs `clusters.configure`. 404 for one that is not kept any more.
         */
        get: operations["getSchedulerConfigurationVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgId}/scheduler-configuration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The Slurm configuration that new clusters of the organization start with
         * @description Needs `clusters.configure`. Empty when there is no default.
         */
        get: operations["getDefaultSchedulerConfiguration"];
        /**
         * Replace the Slurm configuration that new clusters of the organization start with
         * @description Needs `clusters.configure`. The whole of it: a field that is left out is cleared. Clusters that are there
         *     already keep theirs.
         */
        put: operations["setDefaultSchedulerConfiguration"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgId}/storage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The storage of every cluster that the organization owns
         * @description Needs `clusters.read` in the organization; a grant on one cluster is not enough, see that cluster's options.
         *     All of it in one response, clusters without storage and released ones included.
         */
        get: operations["listStorage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Error: {
            /** @description Stable, for programs */
            code: string;
            /** @description For people; its wording can change */
            message: string;
            /** @description Whether the same request may succeed later */
            retryable: boolean;
        };
        ProtectedResource: {
            resource: string;
            authorization_servers: string[];
            svc_audiences: string[];
            svc_business_url: string;
            svc_cli_client_id: string;
            /** @description The scopes to ask for, where the issuer does not know the ones made from the audiences */
            svc_scopes?: string[];
            bearer_methods_supported: "header"[];
        };
        Cluster: {
            /** Format: uuid */
            id: string;
            metadata: {
                /** Format: date-time */
                createdAt: string;
                /** Format: date-time */
                updatedAt: string;
            };
            spec: {
                name: string;
                site: {
                    id: string;
                    name: string;
                };
                businessOrganization: {
                    id: string;
                };
                /** @description Target Kubernetes version */
                version: string;
                versionGeneration: number;
                desiredGeneration: number;
                schedulerGeneration: number;
                /** @description Operator overrides of managed components */
                apps?: Record<string, never>;
            };
            status: {
                /** @enum {string} */
                lifecycleState: "provisioning" | "active" | "releasing" | "released";
                lifecycleVersion: number;
                kubeletVersion: string;
            };
        };
        SshAccess: {
            hostname: string;
            port: number;
            username: string;
            host_key: string;
            host_key_fingerprint: string;
            /** @description While one host key takes the place of another, the one that is not used now. Know both. */
            other_host_key?: string;
            /** @enum {string} */
            login_mode: "Shared" | "PerUser";
            ready: boolean;
            /** @enum {string} */
            reason: "ready" | "no_keys" | "access_not_projected" | "projection_pending" | "gateway_unavailable" | "observation_stale" | "cluster_inactive" | "named_user_required";
            /** @description Present where the sign-in or the keys have lapsed, or keys of this type are not accepted (`access` and `gateway` in the configuration); says what to do */
            lapsed?: string;
            manifest_generation: number;
            observed_manifest_generation: number;
            ssh_key_set_generation: number;
            key_fingerprints: string[];
            shell: string;
            /** @description Hosts that have not confirmed the last change of your account or keys, for which logins do not wait; and those that cannot have your account, with the reason */
            waiting_hosts?: components["schemas"]["WaitingHost"][];
            /**
             * Format: date-time
             * @description When your permission ends by itself; left out when it does not
             */
            access_expires_at?: string;
            observation_current: boolean;
            /** Format: date-time */
            observed_at?: string;
        };
        /** @description A host of a Slurm cluster without the newest access list */
        WaitingHost: {
            /** @description The Slurm node, or the address that it is managed by */
            host: string;
            /** Format: date-time */
            since: string;
            /** @description Why */
            message: string;
        };
        /** @description Whether something works; there only when it describes the cluster's current configuration */
        Condition: {
            /** @enum {string} */
            type: "SUNKReady" | "ControlPlaneAvailable" | "StorageReady";
            /** @enum {string} */
            status: "True" | "False" | "Unknown";
            observedGeneration: number;
            reason?: string;
            message?: string;
            /** Format: date-time */
            lastTransitionTime?: string;
        };
        /** @enum {string} */
        ObservedState: "available" | "unknown" | "unavailable";
        /** @enum {string} */
        Configured: "configured" | "not_configured" | "unknown";
        /** @description Where more storage is bought, at the Business API */
        StoragePurchase: {
            /** @enum {string} */
            method: "POST";
            path: string;
            /** Format: uuid */
            target_cluster_id: string;
            /** @description What accepted purchases come to */
            admittedQuotaBytes?: number;
        };
        ClusterOptions: {
            state: components["schemas"]["ObservedState"];
            reason?: string;
            /** Format: date-time */
            observedAt?: string;
            scheduler: {
                configured: {
                    /** @enum {string} */
                    state: "configured" | "none" | "unknown";
                    /**
                     * @description There when `state` is `configured`
                     * @enum {string}
                     */
                    value?: "sunk" | "kubernetes";
                };
                ready?: components["schemas"]["Condition"];
                supported: {
                    kubernetes: boolean;
                    sunk: boolean;
                };
            };
            storage: {
                configured: {
                    ceph: components["schemas"]["Configured"];
                    weka: components["schemas"]["Configured"];
                    nfs: components["schemas"]["Configured"];
                };
                /** @description The Ceph quota that the cluster reports */
                quotaBytes?: number;
                ready?: components["schemas"]["Condition"];
                /** @description What can be bought */
                supported: {
                    ceph: boolean;
                    nfs: boolean;
                };
                purchase: components["schemas"]["StoragePurchase"];
            };
        };
        Machine: {
            /** Format: uuid */
            id: string;
            name: string;
            /** @enum {string} */
            lifecycle_state: "registered" | "admitted" | "quarantined";
            hardware: {
                gpu_model?: string;
                gpu_count?: number;
                /** @description Logical cores */
                cpu_cores?: number;
                memory_gib?: number;
                /** @description InfiniBand link speed */
                ib_speed?: string;
            };
            /** @description The latest report of the machine */
            observed?: {
                ready: boolean;
                /** @description In the scheduler's own words */
                phase: string;
                /** @enum {string} */
                freshness: "fresh" | "stale" | "unknown";
                /** Format: date-time */
                observed_at: string;
                generation: number;
            };
        };
        ClusterUsage: {
            organization_id: string;
            /** Format: uuid */
            cluster_id: string;
            /**
             * @description Left out where the cluster has none
             * @enum {string}
             */
            scheduler?: "sunk" | "kubernetes";
            /**
             * Format: date-time
             * @description When the cluster last reported; left out before it did
             */
            observed_at?: string;
            /** @description Web pages about it, as the lab file names them */
            links?: {
                name: string;
                url: string;
            }[];
            gpus: {
                total: number;
                free: number;
                in_use: number;
                /** @description Not in use, on machines that take no work */
                away: number;
                unknown: number;
                /** @description Machines all of whose GPUs are free */
                free_nodes: number;
                /** @description The most that are free on one machine */
                biggest_block: number;
            };
            machines: {
                /** Format: uuid */
                id: string;
                name: string;
                /** @description null: not known, or not lately */
                takes_work: boolean | null;
                gpu_count?: number;
                /** @description Left out: not known */
                gpus_in_use?: number;
                /** @description Why it takes no work, in the words of who or what said so */
                reason?: string;
                /** Format: date-time */
                observed_at?: string;
            }[];
            /** @description Slurm jobs that run, yours first; those of others where Slurm shows them to everyone (PrivateData), or to owners, admins and staff. Left out where it is not known which run */
            jobs?: components["schemas"]["Job"][];
            /** @description Those that wait, in the order of their priority; whose you see is as with `jobs` */
            pending_jobs?: components["schemas"]["PendingJob"][];
            /** @description Those that you may not see, or that were too many to name */
            other_jobs?: {
                jobs: number;
                /** @description As far as it is known */
                gpus: number;
                pending: number;
            };
            /** @description Pods that hold GPUs, where Slurm does not; for owners, admins, staff, and members with clusters.kubernetes. Left out where it is not known which */
            pods?: components["schemas"]["GpuPod"][];
        };
        Job: {
            /** @description As squeue prints it: of an array 4711_3, of a heterogeneous job 4711+1 */
            id: string;
            name: string;
            /** @description Login name */
            user: string;
            /** @description What a member of the organization is called */
            person?: string;
            mine: boolean;
            machines: string[];
            /** @description All that it holds */
            gpus: number;
            /** Format: date-time */
            started_at?: string;
            /**
             * Format: date-time
             * @description When its time is up; left out where it is not limited
             */
            ends_at?: string;
        };
        PendingJob: {
            id: string;
            name: string;
            /** @description Login name */
            user: string;
            /** @description What a member of the organization is called */
            person?: string;
            mine: boolean;
            /** @description All that it asks for */
            gpus: number;
            /** @description Slurm's word for why it waits, such as Resources */
            reason: string;
            /** @description How many of higher priority wait */
            ahead: number;
            /**
             * Format: date-time
             * @description When Slurm expects that it starts; left out where it does not say
             */
            expected_at?: string;
        };
        GpuHours: {
            organization_id: string;
            since: string;
            items: components["schemas"]["ClusterGpuHours"][];
        };
        ClusterGpuHours: {
            /** Format: uuid */
            cluster_id: string;
            cluster_name: string;
            /**
             * @description observed: some of it from the jobs that reports named
             * @enum {string}
             */
            source?: "slurmdbd" | "observed";
            /** @description The first that is known */
            first_day?: string;
            /** @description Of everyone */
            gpu_hours: number;
            /** @description Of the organization's members */
            members_gpu_hours: number;
            /** @description What the Slurm account has of its own, and people in it, whose you see as with their hours */
            limits: components["schemas"]["SlurmLimit"][];
            /** @description Those that you may see, who used the most first */
            people: {
                /** @description Login name */
                user: string;
                /** @description What a member of the organization is called */
                person?: string;
                mine: boolean;
                gpu_hours: number;
            }[];
            /** @description From the first that is known to today */
            days: {
                day: string;
                /** @description Of everyone */
                gpu_hours: number;
            }[];
        };
        SlurmLimit: {
            /** @description Login name; left out - the account */
            user?: string;
            /** @description In Slurm's terms, such as Fairshare or GrpTRES */
            name: string;
            value: string;
            /** @description What the lab file has, where another was set by hand, which stays */
            lab_file?: string;
        };
        GpuPod: {
            namespace: string;
            name: string;
            machine: string;
            gpus: number;
        };
        /** @description File name to text */
        SlurmFiles: {
            [key: string]: string;
        };
        SlurmConfiguration: {
            /** @description Partition definitions in place of the generated ones */
            slurmPartitions?: string;
            /** @description Lines appended to slurm.conf */
            slurmExtraConfig?: string;
            /** @description Lines appended to cgroup.conf */
            cgroupExtraConfig?: string;
            /** @description gres.conf in place of the generated one */
            gresConf?: string;
            prolog?: components["schemas"]["SlurmFiles"];
            epilog?: components["schemas"]["SlurmFiles"];
            controllerEtc?: components["schemas"]["SlurmFiles"];
            /** @description Script that runs when a login node starts */
            loginS6Packages?: string;
            /** @description Script that runs when a compute node starts */
            computeS6Packages?: string;
        };
        SlurmConfigurationChange: {
            field: string;
            file?: string;
            /** @enum {string} */
            change: "added" | "changed" | "removed";
        };
        SlurmConfigurationCheck: {
            /** @description The number of the one that stands; 0 while there is none */
            generation: number;
            /** @description Why it would be refused, the first 50; empty when it would not */
            faults: {
                /** @description Left out where it concerns all of it */
                field?: string;
                file?: string;
                message: string;
            }[];
            /** @description How it differs from the one that stands, the first 200 */
            changes: components["schemas"]["SlurmConfigurationChange"][];
            /** @description How many changes there are in all */
            changeCount: number;
            /** @description Partitions that are defined now and would not be any more; Slurm ends the jobs in them */
            removedPartitions: string[];
            /** @description Whether the cluster has a Slurm that takes it up */
            hasSlurm: boolean;
            /** @description What restarts, in order */
            restarts: ("login" | "controller" | "accounting" | "compute")[];
            /**
             * @description With `live`, slurmctld restarts, and slurmd on one node after the other; sessions and jobs go on
             * @enum {string}
             */
            rollout: "restart" | "live";
            /** @description SSH sessions that are open on the cluster and would end */
            openSessions: number;
            /** @description Jobs that ran in the last report and would end, because compute nodes restart. Left out: it is not known which run */
            endedJobs?: number;
        };
        SlurmConfigurationStatus: {
            /** @description The number of the one that stands; 0 while there is none */
            generation: number;
            /**
             * @description `saved`: the platform has not passed it on yet. `applying`: the cluster tries it out or takes it up. `refused`: the
             *     cluster tried it and keeps the one before. `failed`: it could not be applied, and is tried again. `unknown`: the
             *     cluster has not reported lately. `no_slurm`: it is kept, and the cluster has no Slurm that would take it up.
             * @enum {string}
             */
            state: "never_written" | "saved" | "applying" | "in_force" | "refused" | "failed" | "unknown" | "no_slurm" | "not_in_service";
            /** Format: date-time */
            savedAt?: string;
            /** @description The number of the one that the cluster has; 0 for none of them. Left out where that is not known. */
            inForceGeneration?: number;
            /**
             * Format: date-time
             * @description The last report
             */
            observedAt?: string;
            /** @description What stands in the way, in the words of the cluster */
            message?: string;
        };
        SlurmConfigurationVersion: {
            generation: number;
            /** Format: date-time */
            createdAt: string;
            author: {
                userId: string;
                email: string;
            };
            /** @description The audit reason, empty where none was given; null where the audit trail does not have it */
            reason: string | null;
            /** @description How it differed from the one before it, the first 200 */
            changes: components["schemas"]["SlurmConfigurationChange"][];
            /** @description How many changes there are in all */
            changeCount: number;
            /** @description Its size as JSON */
            bytes: number;
        };
        DefaultSlurmConfiguration: {
            slurmExtraConfig?: string;
            cgroupExtraConfig?: string;
            prolog?: components["schemas"]["SlurmFiles"];
            epilog?: components["schemas"]["SlurmFiles"];
            controllerEtc?: components["schemas"]["SlurmFiles"];
            loginS6Packages?: string;
            computeS6Packages?: string;
        };
        StorageInventoryEntry: {
            /** Format: uuid */
            clusterId: string;
            clusterName: string;
            /** @enum {string} */
            lifecycleState: "provisioning" | "active" | "releasing" | "released";
            state: components["schemas"]["ObservedState"];
            reason?: string;
            /** Format: date-time */
            observedAt?: string;
            backends: {
                /** @enum {string} */
                type: "ceph" | "weka" | "nfs";
                configured: components["schemas"]["Configured"];
                /** @description The Ceph quota that the cluster applied */
                configuredQuotaBytes?: number;
                /** @description What active purchases come to; neither what is used nor what is free */
                purchasedRawBytes?: number;
                ready?: components["schemas"]["Condition"];
                purchase?: components["schemas"]["StoragePurchase"];
            }[];
        };
    };
    responses: {
        /** @description The request was refused; `code` says why */
        Error: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: {
        /** @description Anything but a UUID is 400 invalid_cluster */
        ClusterId: string;
        OrgId: string;
        /** @description Left out, it is 400 invalid_organization */
        BusinessOrgId: string;
    };
    requestBodies: never;
    headers: {
        /** @description The number of the configuration, in quotes; `"0"` while it was never written */
        ConfigurationTag: string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getProtectedResource: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Discovery document */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProtectedResource"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listClusters: {
        parameters: {
            query: {
                /** @description Left out, it is 400 invalid_organization */
                businessOrgId: components["parameters"]["BusinessOrgId"];
                limit?: number;
                /** @description The `nextPageToken` of the page before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of clusters */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Cluster"][];
                        nextPageToken?: string;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getCluster: {
        parameters: {
            query: {
                /** @description Left out, it is 400 invalid_organization */
                businessOrgId: components["parameters"]["BusinessOrgId"];
            };
            header?: never;
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The cluster */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cluster"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getSshAccess: {
        parameters: {
            query: {
                organizationId: string;
                /** @description An active key of the caller, as `GET /me/ssh-keys` gives it. Any other one is `no_keys`. */
                keyFingerprint?: string;
            };
            header?: never;
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Connection details and readiness */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SshAccess"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getClusterOptions: {
        parameters: {
            query: {
                /** @description Left out, it is 400 invalid_organization */
                businessOrgId: components["parameters"]["BusinessOrgId"];
            };
            header?: never;
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The options */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClusterOptions"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listMachines: {
        parameters: {
            query: {
                businessOrgId: string;
                limit?: number;
                /** @description The `next_page_token` of the page before */
                after?: string;
            };
            header?: never;
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of machines */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        organization_id: string;
                        /** Format: uuid */
                        cluster_id: string;
                        items: components["schemas"]["Machine"][];
                        next_page_token?: string;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getClusterUsage: {
        parameters: {
            query: {
                businessOrgId: string;
            };
            header?: never;
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sum, and every machine by name */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClusterUsage"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listGpuHours: {
        parameters: {
            query: {
                /** @description Left out, it is 400 invalid_organization */
                businessOrgId: components["parameters"]["BusinessOrgId"];
                /** @description How many */
                days?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description By cluster */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GpuHours"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listClusterUsage: {
        parameters: {
            query: {
                /** @description Left out, it is 400 invalid_organization */
                businessOrgId: components["parameters"]["BusinessOrgId"];
                /** @description Up to 100, with commas between them */
                cluster_ids: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In the order that was asked for */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["ClusterUsage"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getKubeconfig: {
        parameters: {
            query: {
                organizationId: string;
            };
            header?: never;
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description YAML */
                        kubeconfig: string;
                        /**
                         * Format: date-time
                         * @description When the grant or the permission that admits you ends; left out when nothing ends
                         */
                        accessExpiresAt?: string;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getSchedulerConfiguration: {
        parameters: {
            query: {
                businessOrgId: string;
            };
            header?: never;
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The configuration */
            200: {
                headers: {
                    ETag: components["headers"]["ConfigurationTag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SlurmConfiguration"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    setSchedulerConfiguration: {
        parameters: {
            query: {
                businessOrgId: string;
            };
            header?: {
                "If-Match"?: string;
                /** @description Beyond ASCII in UTF-8 */
                "Audit-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SlurmConfiguration"];
            };
        };
        responses: {
            /** @description The configuration as stored */
            200: {
                headers: {
                    ETag: components["headers"]["ConfigurationTag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SlurmConfiguration"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    checkSchedulerConfiguration: {
        parameters: {
            query: {
                businessOrgId: string;
            };
            header?: never;
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SlurmConfiguration"];
            };
        };
        responses: {
            /** @description What it would come to */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SlurmConfigurationCheck"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getSchedulerConfigurationStatus: {
        parameters: {
            query: {
                businessOrgId: string;
            };
            header?: never;
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SlurmConfigurationStatus"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listSchedulerConfigurationVersions: {
        parameters: {
            query: {
                businessOrgId: string;
            };
            header?: never;
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The history */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["SlurmConfigurationVersion"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getSchedulerConfigurationVersion: {
        parameters: {
            query: {
                businessOrgId: string;
            };
            header?: never;
            path: {
                /** @description Anything but a UUID is 400 invalid_cluster */
                clusterId: components["parameters"]["ClusterId"];
                generation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The configuration */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SlurmConfiguration"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getDefaultSchedulerConfiguration: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orgId: components["parameters"]["OrgId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The default */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DefaultSlurmConfiguration"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    setDefaultSchedulerConfiguration: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orgId: components["parameters"]["OrgId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DefaultSlurmConfiguration"];
            };
        };
        responses: {
            /** @description The default as stored */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DefaultSlurmConfiguration"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listStorage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orgId: components["parameters"]["OrgId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The inventory */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["StorageInventoryEntry"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
}
