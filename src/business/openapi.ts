// Made by `npm run generate` from the YAML documents in openapi/. Edit those.

export interface paths {
    "/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who is signed in
         * @description The person, their memberships and their staff keys. The first call makes an account, and a membership, when
         *     the domain of the sign-in address joins an organization automatically.
         */
        get: operations["getMe"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/ssh-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Your SSH keys, revoked ones included */
        get: operations["listSshKeys"];
        put?: never;
        /**
         * Register an SSH key
         * @description One Ed25519 public key in OpenSSH format. A key can be registered once, by one person, for good: not even a
         *     revoked key can be registered again.
         */
        post: operations["registerSshKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/ssh-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Register an SSH key (use POST /me/ssh-keys)
         * @deprecated
         * @description The organization has no effect and membership is not needed.
         */
        post: operations["registerSshKeyForOrganization"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/ssh-keys/{keyID}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revoke one of your SSH keys
         * @description Sessions that were opened with the key are closed. Revoking it again changes nothing.
         */
        post: operations["revokeSshKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/login-preferences": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set your login shell
         * @description It applies on every cluster of every organization. Nothing restarts and open sessions stay.
         */
        put: operations["setLoginPreferences"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/resource-grants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Your live Kubernetes grants
         * @description On clusters of any organization. What organization permissions give is not among them.
         */
        get: operations["listResourceGrants"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/resource-access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether you pass a gate of a cluster, and by which way
         * @description Without `scope`, 200 means that some part of the cluster is reachable. 403 means that none is.
         */
        get: operations["getResourceAccess"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/permission-profiles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every permission, and the named presets */
        get: operations["listPermissionProfiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The members of an organization you belong to */
        get: operations["listMembers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/members/{userID}/permissions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What a member was granted
         * @description Your own without more; another member's with `members.manage`.
         */
        get: operations["getMemberPermissions"];
        /**
         * Set what a member is granted
         * @description The complete set: what is left out is lost. Needs `members.manage`, and every key that is added. An owner or
         *     an admin holds everything already and cannot be granted keys.
         */
        put: operations["setMemberPermissions"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/clusters/{clusterID}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One cluster
         * @description Needs `clusters.read`.
         */
        get: operations["getCluster"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An organization you belong to */
        get: operations["getOrganization"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/clusters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The organization's clusters
         * @description In order of creation, all in one response. Without `clusters.read` the list is empty.
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
    "/organizations/{orgID}/clusters/{clusterID}/access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The access list of a Slurm cluster
         * @description Everyone who holds `clusters.ssh`, by any path, with or without a key. Needs `clusters.read`.
         */
        get: operations["getClusterAccess"];
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
        KeyError: {
            code: string;
            error: string;
            retryable: boolean;
        };
        Me: {
            user: components["schemas"]["User"];
            memberships: components["schemas"]["Membership"][];
            /** @description Absent when there are several organizations to choose from */
            default_org_id?: string;
            staff_keys: string[];
        };
        User: {
            id: string;
            primary_email: string;
            display_name: string;
            /** @description Asserted by the identity provider; not the cluster username */
            preferred_username?: string;
            login_shell: string;
            /** @enum {string} */
            lifecycle_state: "active";
            created_at: components["schemas"]["Time"];
            updated_at: components["schemas"]["Time"];
        };
        Membership: {
            org_id: string;
            user_id: string;
            email: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member";
            /** @enum {string} */
            lifecycle_state: "active";
            organization_username: components["schemas"]["OrganizationUsername"];
            created_at: components["schemas"]["Time"];
            updated_at: components["schemas"]["Time"];
        };
        OrganizationUsername: {
            id: string;
            org_id: string;
            user_id: string;
            username: string;
            source: string;
            /** @enum {string} */
            lifecycle_state: "reserved" | "frozen";
            created_at: components["schemas"]["Time"];
            frozen_at?: components["schemas"]["Time"];
        };
        Organization: {
            id: string;
            slug: string;
            display_name: string;
            lifecycle_state: string;
            created_by_user_id: string;
            created_at: components["schemas"]["Time"];
            updated_at: components["schemas"]["Time"];
        };
        ResourceGrant: {
            id: string;
            /** @enum {string} */
            resource_kind: "kubernetes_cluster";
            /** @description The cluster ID */
            resource_id: string;
            user_id: string;
            /** @description The holder's primary email address */
            username: string;
            /** @enum {string} */
            relation: "kubernetes.viewer" | "kubernetes.developer" | "kubernetes.admin";
            /** @description A namespace; absent for the whole cluster */
            scope?: string;
            /** @description A role that narrows the relation */
            role_id?: string;
            expires_at?: components["schemas"]["Time"];
            /** @description The user ID of who granted it */
            granted_by: string;
            granted_at: components["schemas"]["Time"];
        };
        SshKey: {
            id: string;
            user_id: string;
            /** @enum {string} */
            key_type: "ssh-ed25519";
            /** @description The key as stored */
            public_material: string;
            fingerprint: string;
            /** @enum {string} */
            lifecycle_state: "active" | "revoked";
            revoked_at?: components["schemas"]["Time"];
            created_at: components["schemas"]["Time"];
            created_by_user_id: string;
            created_command_id: string;
            /** @description The generation of the key set that this key made */
            source_revision: number;
        };
        SshKeySet: {
            user_id: string;
            generation: number;
            /** @description Digest of the active keys' fingerprints */
            source_hash: string;
            created_at: components["schemas"]["Time"];
        };
        Cluster: {
            /** Format: uuid */
            id: string;
            organization_id: string;
            /** @enum {string} */
            state: "provisioning" | "active" | "releasing" | "released";
            reason_code: string | null;
            expected_node_count: number | null;
            assigned_node_count: number;
            /** @enum {string} */
            selected_scheduler?: "sunk" | "kubernetes";
            reservation_id?: string;
            infrastructure_ready_at: components["schemas"]["Time"] | null;
            teardown_completed_at: components["schemas"]["Time"] | null;
            cleanup_state: string | null;
            end_command_id: string | null;
            version: number;
            created_at: components["schemas"]["Time"];
            updated_at: components["schemas"]["Time"];
        };
        AccessList: {
            /** Format: uuid */
            cluster_id: string;
            organization_id: string;
            generation: number;
            /** @enum {string} */
            state: "pending" | "accepted" | "converged" | "stale" | "rejected" | "failed";
            /** @enum {unknown} */
            observation_state: "pending" | "converged" | "failed" | null;
            desired_generation: number | null;
            observed_generation: number | null;
            source_hash: string;
            updated_at: components["schemas"]["Time"];
            users: components["schemas"]["AccessListUser"][];
        };
        AccessListUser: {
            user_id: string;
            username: string;
            /** @enum {string} */
            access_mode: "use" | "admin";
            /** @enum {string} */
            desired_login_state: "ready" | "waiting_for_key";
            ssh_key_set_generation: number;
            allocation?: {
                uid: number;
                gid: number;
                home: string;
                shell: string;
            };
        };
        /** Format: date-time */
        Time: string;
    };
    responses: {
        /** @description The key, registered (201), or registered by the same request before (200) */
        RegisteredSshKey: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    ssh_key: components["schemas"]["SshKey"];
                    ssh_key_set: components["schemas"]["SshKeySet"];
                    command_id: string;
                };
            };
        };
        /** @description The keys granted directly, or the one that stands for the role of an owner or admin */
        MemberPermissions: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    organization_id: string;
                    user_id: string;
                    /** @enum {string} */
                    role: "owner" | "admin" | "member";
                    permissions: string[];
                };
            };
        };
        /** @description The request was refused; `code` says why */
        Error: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The request was refused; `code` says why */
        KeyError: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["KeyError"] | components["schemas"]["Error"];
            };
        };
    };
    parameters: {
        OrgID: string;
        UserID: string;
        ClusterID: string;
        /** @description Required, 1 to 200 characters. The same key and body again answers with the first result. */
        IdempotencyKey: string;
        /** @description Required, 1 to 500 characters, kept with the change. */
        AuditReason: string;
    };
    requestBodies: {
        SshKey: {
            content: {
                "application/json": {
                    /**
                     * @description One Ed25519 public key in OpenSSH format
                     * @example ssh-ed25519 AAAAC3Nza… ada@laptop
                     */
                    public_key: string;
                };
            };
        };
    };
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getMe: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The signed-in person */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listSshKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Keys, oldest first, and the generation of the set */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        keys: components["schemas"]["SshKey"][];
                        generation: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    registerSshKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description Required, 1 to 200 characters. The same key and body again answers with the first result. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description Required, 1 to 500 characters, kept with the change. */
                "Audit-Reason"?: components["parameters"]["AuditReason"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["SshKey"];
        responses: {
            200: components["responses"]["RegisteredSshKey"];
            201: components["responses"]["RegisteredSshKey"];
            default: components["responses"]["KeyError"];
        };
    };
    registerSshKeyForOrganization: {
        parameters: {
            query?: never;
            header?: {
                /** @description Required, 1 to 200 characters. The same key and body again answers with the first result. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description Required, 1 to 500 characters, kept with the change. */
                "Audit-Reason"?: components["parameters"]["AuditReason"];
            };
            path: {
                orgID: string;
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["SshKey"];
        responses: {
            200: components["responses"]["RegisteredSshKey"];
            201: components["responses"]["RegisteredSshKey"];
            default: components["responses"]["KeyError"];
        };
    };
    revokeSshKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description Required, 1 to 200 characters. The same key and body again answers with the first result. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description Required, 1 to 500 characters, kept with the change. */
                "Audit-Reason"?: components["parameters"]["AuditReason"];
            };
            path: {
                keyID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The revoked key and the key set that is left */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ssh_key: components["schemas"]["SshKey"];
                        ssh_key_set: components["schemas"]["SshKeySet"];
                        command_id: string;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    setLoginPreferences: {
        parameters: {
            query?: never;
            header?: {
                /** @description Required, 1 to 200 characters. The same key and body again answers with the first result. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description Required, 1 to 500 characters, kept with the change. */
                "Audit-Reason"?: components["parameters"]["AuditReason"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description An absolute path, such as /bin/bash */
                    shell: string;
                };
            };
        };
        responses: {
            /** @description The shell as it is set now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        shell: string;
                        command_id: string;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listResourceGrants: {
        parameters: {
            query?: {
                /** @description `kubernetes_cluster` for cluster grants only */
                kind?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The grants, oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        grants: components["schemas"]["ResourceGrant"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getResourceAccess: {
        parameters: {
            query: {
                kind: "kubernetes_cluster";
                /** @description The cluster ID */
                id: string;
                gate: "read" | "kubernetes";
                /** @description A namespace */
                scope?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description You pass */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        user_id: string;
                        /** @enum {string} */
                        kind: "kubernetes_cluster";
                        id: string;
                        /** @enum {string} */
                        gate: "read" | "kubernetes";
                        /** @enum {string} */
                        via: "organization" | "grant" | "staff";
                        grant_id?: string;
                        expires_at?: components["schemas"]["Time"];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listPermissionProfiles: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The same for every organization */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        permissions: {
                            key: string;
                            description: string;
                            implies: string[];
                        }[];
                        profiles: {
                            name: string;
                            description: string;
                            permissions: string[];
                        }[];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listMembers: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Oldest membership first, all in one response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        members: components["schemas"]["Membership"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getMemberPermissions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orgID: components["parameters"]["OrgID"];
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["MemberPermissions"];
            default: components["responses"]["Error"];
        };
    };
    setMemberPermissions: {
        parameters: {
            query?: never;
            header?: {
                /** @description Required, 1 to 200 characters. The same key and body again answers with the first result. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description Required, 1 to 500 characters, kept with the change. */
                "Audit-Reason"?: components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    permissions: string[];
                };
            };
        };
        responses: {
            200: components["responses"]["MemberPermissions"];
            default: components["responses"]["Error"];
        };
    };
    getCluster: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orgID: components["parameters"]["OrgID"];
                clusterID: components["parameters"]["ClusterID"];
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
    getOrganization: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The organization */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Organization"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listClusters: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The clusters */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        clusters: components["schemas"]["Cluster"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getClusterAccess: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orgID: components["parameters"]["OrgID"];
                clusterID: components["parameters"]["ClusterID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The newest access list and how far its delivery has come */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessList"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
}
