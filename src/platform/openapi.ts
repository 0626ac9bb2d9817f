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
         * @description Answers 200 even when it does not work yet; `reason` says what is missing. Needs `clusters.ssh`.
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
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Error: {
            /** @description Stable */
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
            /** @enum {string} */
            login_mode: "Shared" | "PerUser";
            ready: boolean;
            /** @enum {string} */
            reason: "ready" | "no_keys" | "access_not_projected" | "projection_pending" | "gateway_unavailable" | "observation_stale" | "cluster_inactive" | "named_user_required";
            manifest_generation: number;
            observed_manifest_generation: number;
            ssh_key_set_generation: number;
            key_fingerprints: string[];
            shell: string;
            observation_current: boolean;
            /** Format: date-time */
            observed_at?: string;
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
        ClusterId: string;
        /** @description Required */
        BusinessOrgId: string;
    };
    requestBodies: never;
    headers: never;
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
            query?: {
                /** @description Required */
                businessOrgId?: components["parameters"]["BusinessOrgId"];
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
            query?: {
                /** @description Required */
                businessOrgId?: components["parameters"]["BusinessOrgId"];
            };
            header?: never;
            path: {
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
            };
            header?: never;
            path: {
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
}
