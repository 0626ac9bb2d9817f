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
    "/me/ssh-keys/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What registering another SSH key, or revoking one of yours, would do on the clusters
         * @description Nothing is changed. Jobs and sessions of other people are counted. Who asks too often gets 429.
         */
        get: operations["planSshKeyChange"];
        put?: never;
        post?: never;
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
    "/me/ssh-keys/{keyID}/label": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set what one of your SSH keys is called
         * @description At first a key is called by its comment. An empty label takes the name away. Nothing happens on clusters.
         */
        put: operations["renameSshKey"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/ssh-keys/{keyID}/clusters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Which clusters have dropped a revoked key of yours, and when
         * @description Those that had the key, or were being given it, when it was revoked. The gateway refuses a revoked key from
         *     `revoked_at` on, whether or not a cluster has dropped it. Empty for a key that is active.
         */
        get: operations["listKeyClusters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/ssh-sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Your SSH sessions that are open */
        get: operations["listMySessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/ssh-sessions/{sessionID}/close": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Close an SSH session of yours */
        post: operations["closeMySession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/ssh-sessions/past": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Your SSH sessions that are over
         * @description As far as they are kept.
         */
        get: operations["listMyPastSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/ssh-refusals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Logins of yours that the gateway refused lately
         * @description The last twenty, as far as the audit trail is kept. Only keys that are or were registered for you are known to be
         *     yours; a key that is not registered is refused without a record.
         */
        get: operations["listMyRefusals"];
        put?: never;
        post?: never;
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
    "/me/kubernetes-access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether your live Kubernetes grants are in force
         * @description As each cluster reported last. What organization permissions give is not among them.
         */
        get: operations["listMyKubernetesAccess"];
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
        /**
         * The members of an organization you belong to
         * @description Of any organization with `staff.read`.
         */
        get: operations["listMembers"];
        put?: never;
        /**
         * Make someone a member
         * @description Needs to be an owner or an admin, or `staff.operate`; what concerns an owner needs an owner or `staff.operate`. The person is made an account where there is none for the address.
         */
        post: operations["addMember"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/members/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * What changes of members would do
         * @description Tries the changes out, one after the other by the rules of `addMember`, `setMemberRole`, `setMemberPermissions`,
         *     `approveAccessRequest` and `removeMember`, and takes them back. What the caller may not do refuses the whole plan, as it would the write; what
         *     cannot be done is said of the change itself, and the others are planned without it.
         *     Whether a person who is not a member has an account, or one that is deactivated, only `addMember` itself says, which is
         *     recorded. Nor does it say whether they have an SSH key (`once_keyed`). Who asks too often gets 429.
         */
        post: operations["planMemberChanges"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What people reach on the organization's clusters, by which way, and how far their last change has come
         * @description Your own without more; others' with `members.manage`. People who are members, who were, and who hold a grant on a
         *     cluster of the organization; anybody else is left out. Clusters in service: all of them with `clusters.read` or
         *     `members.manage`, otherwise those that you reach in some way.
         */
        get: operations["listMemberAccess"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/access-review": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Everyone with access in the organization, what they hold and until when
         * @description Members, and people who only hold a Kubernetes grant on a cluster of the organization. All of it is read at one
         *     moment. Needs `members.manage` or `staff.read`; other members get the members without what they hold, and no `cluster`.
         */
        get: operations["reviewAccess"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/access-review/csv": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The same as a table for spreadsheets (RFC 4180), all pages
         * @description As `reviewAccess`; with `cluster`, one line for each way in.
         */
        get: operations["saveAccessReview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/grants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The live Kubernetes grants on the organization's clusters
         * @description Of everyone who holds one, members or not. Needs `members.manage`.
         */
        get: operations["listOrganizationGrants"];
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
         * @description Your own without more; another member's with `members.manage` or `staff.read`.
         */
        get: operations["getMemberPermissions"];
        /**
         * Set what a member is granted
         * @description The complete set: what is left out is lost. Needs `staff.operate`, or `members.manage` and every key that is added, or goes on for
         *     longer, for as long. An owner or an admin holds everything already and cannot be granted keys.
         *     409 `invalid_state` for a key whose end passed within the last 24 hours, unless `expires_at` names it (null: for good).
         */
        put: operations["setMemberPermissions"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What you can do on each cluster, and where not, what is missing and who has to act next
         * @description Clusters in service: those of your organizations, all of them with `clusters.read` or `members.manage`, otherwise those that
         *     you may use; and those that are shared with you by a grant.
         */
        get: operations["getMyAccess"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/access-requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What you asked for, in every organization, and what became of it */
        get: operations["listMyAccessRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/access-requests/{requestID}/withdraw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take back what you asked for */
        post: operations["withdrawAccessRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/access-requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What members ask for
         * @description Needs `members.manage`.
         */
        get: operations["listAccessRequests"];
        put?: never;
        /**
         * Ask for permissions, or for more time with them
         * @description Needs membership. The `Audit-Reason` is shown to those who decide. At most five are open at a time, and one lapses after
         *     14 days. 409 for permissions that you hold without an end, and for the same again while it is open.
         */
        post: operations["requestAccess"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/access-requests/{requestID}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Grant what a member asks for
         * @description Needs `members.manage`, and every key that is asked for, for as long. Members cannot decide their own requests. What the
         *     member holds for longer already stays. 409 when it is not open any more.
         */
        post: operations["approveAccessRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/access-requests/{requestID}/decline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Refuse what a member asks for
         * @description Needs `members.manage`. The member reads the `Audit-Reason`.
         */
        post: operations["declineAccessRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/permissions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What every member was granted
         * @description As for one member, for all of them, oldest membership first. Needs `members.manage` or `staff.read`.
         */
        get: operations["listMemberPermissions"];
        put?: never;
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
    "/organizations/{orgID}/members/{userID}/role": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set a member's role
         * @description Needs to be an owner or an admin, or `staff.operate`; what concerns an owner needs an owner or `staff.operate`. An owner always remains.
         */
        put: operations["setMemberRole"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/members/{userID}/username": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set a member's login name
         * @description Needs to be an owner or an admin, or `staff.operate`; what concerns an owner needs an owner or `staff.operate`. Only until it is frozen: first used on a cluster.
         */
        put: operations["setMemberUsername"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/members/{userID}/remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End a membership
         * @description Needs to be an owner or an admin, or `staff.operate`; what concerns an owner needs an owner or `staff.operate`. The accounts on clusters are locked, homes kept, sessions closed. An owner always remains.
         */
        post: operations["removeMember"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/teams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The teams of an organization you belong to
         * @description Each is a group on the organization's Slurm clusters. Of any organization with `staff.read`.
         */
        get: operations["listTeams"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/teams/{team}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Make a team, or replace its members
         * @description Needs to be an owner, or `staff.operate`. The first team of an organization comes with a group of everyone in it. A name and its number are never given to another team.
         */
        put: operations["setTeam"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/teams/{team}/remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End a team
         * @description Needs to be an owner, or `staff.operate`. A group that hosts had before stays there, without the members that it got from here.
         */
        post: operations["removeTeam"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/members/{userID}/kubernetes-access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether a member's Kubernetes permissions are in force on each cluster
         * @description By permission in the organization and by grant, as each cluster said last. Your own without more; another member's with `members.manage` or `staff.read`.
         */
        get: operations["getMemberKubernetesAccess"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/organizations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every organization */
        get: operations["operatorListOrganizations"];
        put?: never;
        /** Make an organization with its first owner */
        post: operations["operatorCreateOrganization"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/organizations/{orgID}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Rename an organization, or set the domains that join it
         * @description What is left out stays as it is.
         */
        put: operations["operatorUpdateOrganization"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** People with an account, in order of their IDs */
        get: operations["operatorListPeople"];
        put?: never;
        /**
         * Make an account
         * @description The first sign-in with this verified address is bound to the account.
         */
        post: operations["operatorCreatePerson"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/staff-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set a person's staff keys
         * @description The complete set. The last person with `staff.operate` cannot lose it.
         */
        put: operations["operatorSetStaffKeys"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set a person's password at the embedded issuer
         * @description It has at least twelve characters, and is none of those that are tried first. What was signed in to with the one before is over. 409 where another issuer is used.
         */
        put: operations["operatorSetPassword"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/password-link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a link with which a person sets a password at the embedded issuer
         * @description It is good once and for a day, and replaces the one before. 409 where another issuer is used.
         */
        post: operations["operatorCreatePasswordLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/second-factor/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take a person's second factor at the embedded issuer, and its recovery codes
         * @description For who has lost both. Where one is asked of them, they set up another at the next sign-in. 409 where another issuer is used.
         */
        post: operations["operatorResetSecondFactor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The identities that a person signs in with */
        get: operations["operatorListIdentities"];
        /**
         * Bind a person's account to another identity at an issuer
         * @description The identity before can no longer sign in as the person, and what it signed in to is over. Without a subject, the next sign-in at the issuer with its verified address is bound to the account. SSH keys and grants stay. 409 when the subject is another account's.
         */
        put: operations["operatorRebindIdentity"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/identities/unbind": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take an identity from a person's account
         * @description It can no longer sign in as the person, what it signed in to is over, and its verified address does not bind it again; rebinding does. 404 where the person has no such identity.
         */
        post: operations["operatorUnbindIdentity"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/email": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Give a person another address
         * @description Identities, memberships, keys and grants stay. 409 where it is the address of another account, or the person is deactivated.
         */
        put: operations["operatorSetPersonEmail"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/sign-in-exemption": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Until when a person's access does not lapse without a sign-in
         * @description For people whose machines log in at night. It has an end, at most a year from now; null ends it at once.
         */
        put: operations["operatorSetSignInExemption"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/erase": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace what names a person who was deactivated
         * @description For good. Name, address, identities, password and key material go at once, the texts of the audit trail in the background; a pseudonym, the user ID, stays, and so do login names that were used on clusters, which are never given again. 409 while the person is active.
         */
        post: operations["operatorErasePerson"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/deactivation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What deactivating a person would do on the clusters
         * @description Needs `staff.operate`. Nothing is changed. The plan is that of a removal from every organization; refused for the last owner of one.
         */
        get: operations["operatorPlanDeactivation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/deactivate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take everything from a person who left
         * @description Memberships, grants, staff keys and SSH keys end, and the person can no longer sign in. 409 for the last owner of an organization.
         */
        post: operations["operatorDeactivatePerson"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/people/{userID}/reactivate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let a person sign in again
         * @description What was taken from them stays taken.
         */
        post: operations["operatorReactivatePerson"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/grants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every live grant */
        get: operations["operatorListGrants"];
        put?: never;
        /** Share a cluster, or a namespace of it, with someone */
        post: operations["operatorCreateGrant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/grants/{grantID}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End a grant */
        post: operations["operatorRevokeGrant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/clusters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every cluster, those released too */
        get: operations["operatorListClusters"];
        put?: never;
        /**
         * Take a cluster into service
         * @description The cluster as a lab file describes it; `organization` is a slug.
         */
        post: operations["operatorCreateCluster"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/clusters/{clusterID}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take a cluster out of service
         * @description What the service put on it is taken away again; homes are kept. This cannot be undone. With `abandon`, a cluster that cannot be reached any more is released at once, and what is left on it is named in `cleanup_state`.
         */
        post: operations["operatorReleaseCluster"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/clusters/{clusterID}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Ask a Kubernetes cluster which rights the service has there
         * @description Asks the API server at this moment, right by right, and changes nothing there.
         */
        get: operations["operatorCheckCluster"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/clusters/{clusterID}/survey": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * See which accounts a Slurm cluster has, before anything is changed there
         * @description Reads on all hosts at this moment, each with a deadline of its own, and changes nothing; takes up to a few minutes. Directories cannot be listed: `names` are asked for besides those that hosts know.
         */
        post: operations["operatorSurveyCluster"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/clusters/{clusterID}/machines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The machines of a cluster */
        get: operations["operatorListMachines"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/machines/{machineID}/admit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Let a machine do work */
        post: operations["operatorAdmitMachine"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/machines/{machineID}/quarantine": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Keep a machine from doing work */
        post: operations["operatorQuarantineMachine"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/reservations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The organization's reservations
         * @description One for each cluster with `reservedNodes` in the lab file. Needs `reservations.read`.
         */
        get: operations["listReservations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/purchases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Buy the storage of a quote
         * @description Needs to be an owner or an admin. Capacity only grows: what is bought comes on top. It counts once an operator has accepted it. 409 when the quote has expired, was used, or the cluster has changed since.
         */
        post: operations["createPurchase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/purchases/quotes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask what buying storage for a cluster would come to
         * @description Needs to be an owner or an admin. A quote is good for 15 minutes.
         */
        post: operations["quotePurchase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/purchases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every storage purchase */
        get: operations["operatorListPurchases"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/purchases/{purchaseID}/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Accept a storage purchase */
        post: operations["operatorAcceptPurchase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/purchases/{purchaseID}/decline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Decline a storage purchase */
        post: operations["operatorDeclinePurchase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The SSH sessions that are open */
        get: operations["operatorListSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/sessions/past": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * SSH sessions that are over
         * @description Needs `staff.audit`. As far as they are kept (`retention.sessions`, `retention.audit`); of each, the audit trail has an entry with the same `seq`.
         */
        get: operations["operatorListPastSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/sessions/{sessionID}/close": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Close an SSH session
         * @description The person sees the audit reason.
         */
        post: operations["operatorCloseSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The audit trail, oldest entry first unless asked otherwise
         * @description Needs `staff.audit`. Each entry carries a digest of itself and the entry before, so that a change of the past shows.
         */
        get: operations["operatorListAuditEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/audit/head": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The head of the audit trail as it is now, signed
         * @description Needs `staff.audit`. What is not signed yet is signed first. 409 when the trail does not fit what was signed before; 404 while it is empty.
         */
        get: operations["operatorGetAuditHead"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/audit/heads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The signed heads of the audit trail, oldest first
         * @description Needs `staff.audit`. At most a thousand are kept; each covers all that the ones before it cover.
         */
        get: operations["operatorListAuditHeads"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/gateway": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How login nodes and people know the SSH gateway */
        get: operations["operatorGetGateway"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/problems": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What must be mended
         * @description Failures of clusters, of the service and of its host, each with the one thing to do. Nothing that mends itself.
         */
        get: operations["operatorListProblems"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/installation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The service's own keys and backups */
        get: operations["operatorGetInstallation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/servers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The servers that share the database
         * @description On SQLite there is one. Those that ended without a word stay in the list for a day.
         */
        get: operations["operatorListServers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Groups at the issuer, how many people are in each, and what rules give for it
         * @description As the tokens of people said last (`identity.groups` of the configuration).
         */
        get: operations["operatorListGroups"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/groups/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * What rules for groups would change, restart and end
         * @description Changes nothing. Goes by the groups that the issuer said last; those of whom none are known are counted.
         */
        post: operations["operatorPlanGroups"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/lab": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The installation as a lab file */
        get: operations["operatorExportLab"];
        put?: never;
        /**
         * Bring the installation to a lab file
         * @description All of it or nothing. What the file does not name stays, unless `prune` is set: then the members, grants and clusters it leaves out are removed, revoked and released.
         */
        post: operations["operatorApplyLab"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operator/lab/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * What applying a lab file would do
         * @description Changes nothing.
         */
        post: operations["operatorPlanLab"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/organizations/{orgID}/retire": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End an organization for good
         * @description Needs to be an owner, or `staff.operate`, and every cluster of it released (409). It takes no new members, clusters or grants, and what members had asked for is gone.
         */
        post: operations["retireOrganization"];
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
            /** @description What has lapsed of the access and the keys, or is about to, and what of your permissions ends soon, a sentence each; absent where there is nothing */
            notices?: string[];
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
        GrantAccess: {
            grant_id: string;
            cluster_id: string;
            cluster_name: string;
            /** @description Whose cluster it is */
            organization_id: string;
            /** @enum {string} */
            state: "applied" | "pending" | "failed" | "unknown";
            /** @description What stands in the way */
            message?: string;
        };
        MemberKubernetesAccess: {
            cluster_id: string;
            cluster_name: string;
            /**
             * @description `none`: there are none, and should be none
             * @enum {string}
             */
            state: "applied" | "pending" | "failed" | "unknown" | "none";
            /** @description What stands in the way */
            message?: string;
        };
        SshKey: {
            id: string;
            user_id: string;
            /**
             * @description The second where the installation accepts security keys
             * @enum {string}
             */
            key_type: "ssh-ed25519" | "sk-ssh-ed25519@openssh.com";
            /** @description The key as stored, without its comment */
            public_material: string;
            fingerprint: string;
            /** @enum {string} */
            lifecycle_state: "active" | "revoked";
            revoked_at?: components["schemas"]["Time"];
            /** @description What you call the key: at first its comment */
            label?: string;
            /** @description The address that registered it, where that is known */
            created_from?: string;
            /** @description The last login with it, where one is known */
            last_used_at?: components["schemas"]["Time"];
            /** @description Where that login came from, as long as addresses of sessions are kept */
            last_used_from?: string;
            /** @description When the key stops to let in; present on an active one where keys are good for so many days only */
            lapses_at?: components["schemas"]["Time"];
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
            /** @description Hosts that have not confirmed the list, which is not `converged` before; those that are furthest behind first, 50 at most */
            waiting_hosts?: components["schemas"]["WaitingHost"][];
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
        Email: string;
        Name: string;
        Domains: string[];
        /** @description A Kubernetes namespace */
        Namespace: string;
        /** @description A ClusterRole that narrows the relation */
        RoleId: string;
        StaffKeys: ("staff.read" | "staff.audit" | "staff.operate")[];
        MemberPermissions: {
            organization_id: string;
            user_id: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member";
            permissions: string[];
            expires_at?: components["schemas"]["Ends"];
        };
        AccessReview: {
            people: components["schemas"]["ReviewedPerson"][];
            /** @description How many there are on all pages */
            total: number;
            /** @description Whether the reader may see what people hold */
            shows_access: boolean;
            /** @description Of the whole organization, or of the cluster, whatever the filter */
            counts: {
                people: number;
                members: number;
                /** @description Owners and admins */
                managers: number;
                /** @description Who may log in over SSH */
                ssh?: number;
            };
            read_at: components["schemas"]["Time"];
            next_page_token?: string;
        };
        ReviewedPerson: {
            user_id: string;
            name: string;
            email: string;
            is_member: boolean;
            /** @enum {string} */
            role?: "owner" | "admin" | "member";
            username?: string;
            member_since?: components["schemas"]["Time"];
            /** @description To the hour; absent before the first */
            last_sign_in_at?: components["schemas"]["Time"];
            /** @description With any of their keys, in any organization; absent before the first */
            last_ssh_login_at?: components["schemas"]["Time"];
            /** @description The end that the last review gave (`access.reviewMonths`), to what the member holds with it still. To keep that, take the end away */
            keep_by?: components["schemas"]["Time"];
            /** @description What was granted directly. Owners and admins hold everything by their role */
            permissions?: string[];
            expires_at?: components["schemas"]["Ends"];
            /** @description Live Kubernetes grants, the first to end first */
            grants?: {
                id: string;
                cluster_id: string;
                cluster_name: string;
                relation: string;
                /** @description A namespace; absent for the whole cluster */
                scope?: string;
                granted_at: components["schemas"]["Time"];
                expires_at?: components["schemas"]["Time"];
            }[];
            /** @description To the cluster that was asked for */
            ways?: components["schemas"]["WayIn"][];
            /**
             * @description On the access list of the Slurm cluster that was asked for
             * @enum {string}
             */
            account?: "ready" | "waiting_for_key" | "none";
        };
        MemberChange: {
            /** @enum {string} */
            change: "add";
            email: components["schemas"]["Email"];
            /** @enum {string} */
            role?: "owner" | "admin" | "member";
            username?: string;
            permissions?: string[];
            expires_at?: components["schemas"]["NewEnds"];
        } | {
            /** @enum {string} */
            change: "role";
            user_id: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member";
        } | {
            /** @enum {string} */
            change: "permissions";
            user_id: string;
            /** @description The complete set */
            permissions: string[];
            expires_at?: components["schemas"]["NewEnds"];
        } | {
            /** @enum {string} */
            change: "remove";
            user_id: string;
        } | {
            /** @enum {string} */
            change: "approve";
            request_id: string;
            /**
             * Format: date-time
             * @description As in `approveAccessRequest`
             */
            expires_at?: string | null;
        };
        MemberPlan: {
            changes: components["schemas"]["PlannedMemberChange"][];
            /** @description Those on which something changes */
            clusters: components["schemas"]["MemberPlanOnCluster"][];
        };
        PlannedMemberChange: {
            /** @enum {string} */
            change: "add" | "role" | "permissions" | "remove" | "approve" | "register_key" | "revoke_key";
            /** @description Empty for an ID that is no member's */
            email: string;
            /** @description Absent for a person who is not a member, whether or not they have an account */
            user_id?: string;
            /** @description The login name after it */
            username?: string;
            /** @enum {string} */
            result: "planned" | "refused";
            /** @description Of a refusal */
            code?: string;
            /** @description Why it is refused */
            message?: string;
        };
        MemberPlanOnCluster: {
            cluster_id: string;
            cluster_name: string;
            /** @description Login accounts that appear */
            added: string[];
            /** @description Those of `added` who are new members: they appear, and what is planned with them happens, once they have an SSH key, which can be at once */
            once_keyed?: string[];
            /** @description Login accounts that go; their homes stay */
            removed: string[];
            /** @description Which members get a login account when they register a key */
            waiting_for_key: string[];
            /**
             * @description Nothing is restarted for people who come and go; only the jobs of those who go end
             * @enum {string}
             */
            rollout?: "live";
            /** @description In this order */
            restarts: ("login" | "controller" | "accounting" | "compute")[];
            ended_jobs: components["schemas"]["RunningJob"][];
            /** @description How many more end */
            other_jobs?: number;
            /**
             * @description The cluster does not say which jobs run; any of them may end
             * @enum {boolean}
             */
            unknown_jobs?: true;
            ended_sessions: components["schemas"]["EndedSession"][];
            /** @description How many more end */
            other_sessions?: number;
            kubernetes: components["schemas"]["KubernetesRoleChange"][];
        };
        EndedSession: {
            user_id: string;
            username: string;
            opened_at: components["schemas"]["Time"];
        };
        KubernetesRoleChange: {
            username: string;
            /**
             * @description A ClusterRole; null: none
             * @enum {unknown}
             */
            before: "edit" | "cluster-admin" | null;
            /** @enum {unknown} */
            after: "edit" | "cluster-admin" | null;
        };
        MemberAccessList: {
            people: components["schemas"]["MemberAccess"][];
            clusters: components["schemas"]["ClusterDelivery"][];
        };
        MemberAccess: {
            user_id: string;
            email: string;
            name: string;
            is_member: boolean;
            /**
             * @description Of a member
             * @enum {string}
             */
            role?: "owner" | "admin" | "member";
            /** @description The login name; theirs for good once a cluster has used it */
            username?: string;
            /** @enum {string} */
            username_state?: "reserved" | "frozen";
            /** @description Of a member */
            member_since?: components["schemas"]["Time"];
            /** @description When the membership last changed, or ended */
            changed_at?: components["schemas"]["Time"];
            /** @description Active SSH keys, oldest first, without what people call them */
            keys: {
                fingerprint: string;
                created_at: components["schemas"]["Time"];
                lapsed: boolean;
            }[];
            clusters: components["schemas"]["AccessToCluster"][];
        };
        AccessToCluster: {
            cluster_id: string;
            ways: components["schemas"]["WayIn"][];
            /** @description Absent where the cluster has no Slurm */
            slurm?: {
                /**
                 * @description What should be there
                 * @enum {string}
                 */
                account: "ready" | "waiting_for_key" | "none";
                /**
                 * @description Whether the cluster has it; `unknown`: it has not reported lately
                 * @enum {string}
                 */
                state: "pending" | "applied" | "failed" | "unknown";
                /** @description The cluster's list has it */
                accepted: boolean;
                /** @description What stands in the way */
                message?: string;
                /** @description Why they cannot log in at the moment; absent where they can */
                obstacle?: string;
            };
            /** @description Absent where the cluster has no Kubernetes side of its own */
            kubernetes?: {
                /**
                 * @description `none`: there are no permissions, and should be none
                 * @enum {string}
                 */
                state: "applied" | "pending" | "failed" | "unknown" | "none";
                message?: string;
            };
        };
        ClusterUse: {
            cluster_id: string;
            cluster_name: string;
            organization_id: string;
            ssh: components["schemas"]["Use"];
            kubernetes: components["schemas"]["Use"];
        };
        Use: {
            /**
             * @description `missing`: someone has to do something first; `pending`: it comes by itself; `failed`: it does not; `none`: the cluster has no such way
             * @enum {string}
             */
            state: "ready" | "missing" | "pending" | "failed" | "none";
            /** @enum {string} */
            reason: "ready" | "not_offered" | "no_permission" | "permission_requested" | "permission_removed" | "permission_ended" | "no_keys" | "key_lapsed" | "sign_in_lapsed" | "named_user_required" | "cluster_inactive" | "no_kubernetes_login" | "applying" | "restarting" | "late" | "fault" | "not_answering" | "not_reporting";
            /** @description Whether you hold what this takes, and the cluster offers it */
            granted: boolean;
            /**
             * @description Who has to act next; `manager`: an owner or admin of the organization. Absent where nothing is to be done
             * @enum {string}
             */
            next?: "you" | "manager" | "operator" | "service";
            /** @description In a sentence or two. What operators read of a fault is in it for those who see the cluster */
            message: string;
            /** @description When your access ends by itself; absent where it does not, or there is none */
            expires_at?: components["schemas"]["Time"];
        };
        WayIn: {
            /** @enum {string} */
            opens: "see" | "ssh" | "ssh.admin" | "kubernetes" | "kubernetes.admin";
            /** @enum {string} */
            by: "role" | "permission" | "grant";
            /** @description The role, the permission that was granted, or the relation */
            name: string;
            /** @description A namespace; absent for the whole cluster */
            scope?: string;
            role_id?: string;
            grant_id?: string;
            /** @description Of a grant; otherwise the last change of the membership, since which it is held at least */
            since: components["schemas"]["Time"];
            /** @description When it ends by itself */
            until?: components["schemas"]["Time"];
        };
        ClusterDelivery: {
            cluster_id: string;
            cluster_name: string;
            /** @description Of the access list for Slurm */
            list_updated_at?: components["schemas"]["Time"];
            /** @description The last report; absent before the first */
            observed_at?: components["schemas"]["Time"];
            /** @description What must be mended there */
            failure?: string;
        };
        /** @description Of keys that end by themselves, when; left out where none does */
        Ends: {
            [key: string]: components["schemas"]["Time"];
        };
        /** @description When keys end by themselves; null: not at all */
        NewEnds: {
            [key: string]: string | null;
        };
        AccessRequest: {
            id: string;
            organization_id: string;
            /** @description Who asks */
            user_id: string;
            /** @description Theirs */
            email: string;
            /** @description The cluster on account of which it is asked. What is approved holds on all of the organization's */
            cluster_id?: string;
            permissions: string[];
            /** @description For how long, from the approval on; left out: without an end */
            hours?: number;
            reason: string;
            /**
             * @description lapsed: not decided in time
             * @enum {string}
             */
            state: "open" | "approved" | "declined" | "withdrawn" | "lapsed";
            created_at: components["schemas"]["Time"];
            /** @description Of an open one */
            lapses_at?: components["schemas"]["Time"];
            /** @description Approved, and something of it was taken away again before its end */
            removed?: boolean;
            decided_at?: components["schemas"]["Time"];
            /** @description The address of who decided */
            decided_by?: string;
            decision_reason?: string;
            /** @description Until when it was approved; left out: without an end */
            expires_at?: components["schemas"]["Time"];
        };
        RemovedMember: {
            organization_id: string;
            user_id: string;
        };
        SignInHours: number;
        OperatorOrganization: {
            organization: components["schemas"]["Organization"];
            auto_join_domains: string[];
            max_hours_without_sign_in?: components["schemas"]["SignInHours"];
            member_count: number;
            cluster_count: number;
        };
        Person: {
            id: string;
            primary_email: string;
            display_name: string;
            /** @enum {string} */
            lifecycle_state: "active" | "deactivated";
            staff_keys: string[];
            /** @description When what names the person was replaced; absent where it was not */
            erased_at?: components["schemas"]["Time"];
            /** @description Absent before the first */
            last_sign_in_at?: components["schemas"]["Time"];
            /** @description When access lapses, or did; absent where it never does. An organization can ask for a sign-in sooner. */
            access_lapses_at?: components["schemas"]["Time"];
            /** @description Until when access does not lapse without a sign-in; absent where it does */
            sign_in_exempt_until?: components["schemas"]["Time"];
            created_at: components["schemas"]["Time"];
            updated_at: components["schemas"]["Time"];
        };
        Identities: {
            identities: components["schemas"]["Identity"][];
            /** @description Identities that were taken from the account, which its address does not bind again until the account is rebound at that issuer */
            unbound?: components["schemas"]["Identity"][];
        };
        Identity: {
            issuer: string;
            subject: string;
            /** @description Since when it is bound, or unbound */
            created_at: components["schemas"]["Time"];
        };
        OperatorGrant: {
            grant: components["schemas"]["ResourceGrant"];
            cluster_name: string;
            /** @description Whether the grant is in force, as the cluster reported last; in the list only */
            access?: {
                /** @enum {string} */
                state: "applied" | "pending" | "failed" | "unknown";
                /** @description What stands in the way */
                message?: string;
            };
        };
        OperatorCluster: {
            cluster: components["schemas"]["Cluster"];
            name: string;
            organization_slug: string;
            site: {
                id: string;
                name: string;
            };
            drivers: ("simulated" | "slurm" | "kubernetes")[];
            access_list: {
                generation: number;
                accepted_generation: number;
                /** @description The one that the cluster last reported to have */
                applied_generation: number | null;
                /** @enum {string} */
                state: "pending" | "accepted" | "converged" | "stale" | "failed";
                updated_at: components["schemas"]["Time"];
            } | null;
            /** @description Slurm, Kubernetes or both */
            sides: components["schemas"]["OperatorClusterSide"][];
            observed_at: components["schemas"]["Time"] | null;
            /** @description What a person must mend there */
            failure: string | null;
            direct?: components["schemas"]["DirectLogins"];
        };
        /** @description Who logs in to the login nodes past the gateway, which a revoked key does not end */
        DirectLogins: {
            /** @description The last day of the people */
            until: string;
            /** @description Login names of those whom the gateway has not met yet; none after that day */
            people: string[];
            /** @description Those of them who have never registered a key here */
            keyless: string[];
            /** @description Accounts that stay */
            services: string[];
        };
        OperatorClusterSide: {
            /** @enum {string} */
            side: "slurm" | "kubernetes";
            /**
             * @description `unreachable`: the last attempt to observe it failed
             * @enum {string}
             */
            state: "unreported" | "reported" | "stale" | "unreachable";
            observed_at: components["schemas"]["Time"] | null;
            /** @description What a person must mend on this side */
            failure: string | null;
            /** @description As far as the service knows */
            failing_since: components["schemas"]["Time"] | null;
            /** @description How many passes failed in a row */
            failures: number;
            /** @description When it is looked at next; null - now, or not any more */
            next_try_at: components["schemas"]["Time"] | null;
        };
        Problem: {
            /** @enum {string} */
            area: "cluster" | "gateway" | "backup" | "certificate" | "disk" | "audit" | "server" | "identity";
            /** @description What it is about, such as the name of a cluster */
            about: string;
            cluster_id?: string;
            /** @enum {string} */
            side?: "slurm" | "kubernetes";
            /**
             * @description `soon`: it works today
             * @enum {string}
             */
            urgency: "now" | "soon";
            since?: components["schemas"]["Time"];
            message: string;
            /** @description The one thing to do */
            action: string;
            next_try_at?: components["schemas"]["Time"];
        };
        Server: {
            /** @description Another one after each start */
            id: string;
            /** @description As its configuration has it (`server.name`), or the name of its host */
            name: string;
            /** @description Of its program */
            version: string;
            /**
             * @description `gone`: not seen for 15 seconds
             * @enum {string}
             */
            state: "live" | "gone";
            /** @description Whether it is the one that answers this */
            answers: boolean;
            started_at: components["schemas"]["Time"];
            /** @description By the clock of the database */
            seen_at: components["schemas"]["Time"];
            /** @description Whether it does what one server does for all: syncing clusters, signing the trail, and other work in the background */
            leads: boolean;
        };
        ServiceKey: {
            /** @description A fingerprint, the kid of tokens, or of the audit trail the key itself */
            id: string;
            /** @description In OpenSSH format */
            line?: string;
            /** @description When it begins to be used */
            from?: components["schemas"]["Time"];
            /** @description When it holds no more */
            until?: components["schemas"]["Time"];
        };
        Installation: {
            keys: {
                /**
                 * @description What the SSH gateway shows to people, what it shows to login nodes, what the embedded issuer signs with, and what signs the audit trail
                 * @enum {string}
                 */
                kind: "host" | "client" | "issuer" | "audit";
                /** @description The one that is used */
                current: components["schemas"]["ServiceKey"];
                /** @description It holds already, and is to be used */
                next?: components["schemas"]["ServiceKey"];
                /** @description It was used, and still holds */
                former?: components["schemas"]["ServiceKey"];
            }[];
            backup: {
                /** @description Left out: none are made by themselves */
                schedule?: {
                    to: string;
                    every_seconds: number;
                    due_at: components["schemas"]["Time"];
                };
                /** @description However it was made */
                last?: components["schemas"]["BackupFile"];
                /** @description Made by itself, and read back whole */
                kept?: components["schemas"]["BackupFile"];
                failure?: {
                    at: components["schemas"]["Time"];
                    failures: number;
                    message: string;
                };
                /** @description The last rehearsal of a restore on this host */
                drill?: {
                    at: components["schemas"]["Time"];
                    file: string;
                    good: boolean;
                };
            };
        };
        BackupFile: {
            at: components["schemas"]["Time"];
            file: string;
            bytes: number;
        };
        ClusterSurvey: {
            /** @description Its name */
            cluster: string;
            organization: {
                slug: string;
                name: string;
            };
            /** @description What concerns the whole cluster, the most important first */
            notices: string[];
            hosts: {
                host: string;
                roles: string[];
                /** @description In words why it is not in the survey */
                fault: string | null;
            }[];
            /** @description By username */
            people: components["schemas"]["SurveyedPerson"][];
        };
        SurveyedPerson: {
            username: string;
            uid: number;
            gid: number;
            /** @description The primary group */
            group: string;
            /** @description The other groups */
            groups: string[];
            name: string;
            home: {
                path: string;
                /** @description The number of the account that owns it */
                owner: number | null;
                mode: string | null;
                /** @description Root cannot read it */
                closed: boolean;
            };
            shell: string;
            /** @description files or directory */
            source: string;
            /** @enum {string} */
            password: "set" | "none" | "locked" | "empty" | "unknown";
            expired: boolean;
            /** @description Keys that can be registered: Ed25519, without options, in this account only */
            keys: components["schemas"]["SurveyedKey"][];
            /** @description Keys that cannot */
            others: components["schemas"]["SurveyedOtherKey"][];
            /** @description Login nodes on which not all keys of the account could be read */
            unread: string[];
            slurm: {
                accounts: string[];
                /** @description The default account */
                default: string;
                /** @description AdminLevel */
                level: string;
                /** @description Accounts that they coordinate */
                coordinates: string[];
                /** @description Hours of the last 365 days */
                cpu: number;
                /** @description Hours of the last 365 days */
                gpu: number;
                /** @description Jobs */
                running: number;
                /** @description Jobs */
                pending: number;
            };
            /** @description By sshd itself, in the last 30 days */
            logins: {
                host: string;
                from: string;
                /** @description Empty without a key */
                fingerprint: string;
                times: number;
                /** @description As the host's log has it */
                last: string;
            }[];
            /** @enum {string} */
            verdict: "not_person" | "name" | "differs" | "privileged" | "home" | "needs_key" | "adopt";
            reasons: string[];
            /** @description What would mend it; none was run */
            commands: string[];
        };
        SurveyedKey: {
            line: string;
            fingerprint: string;
            file: string;
        };
        SurveyedOtherKey: {
            line: string;
            fingerprint: string;
            file: string;
            /** @description Why it cannot be registered */
            reason: string;
        };
        ClusterCheck: {
            server: string;
            /** @description Who the service is there */
            user: string | null;
            /** @description In words why the API server could not be asked */
            fault: string | null;
            rights: {
                /** @description As a rule of RBAC says it */
                right: string;
                allowed: boolean;
            }[];
            /** @description Rights that the service does without */
            optional: {
                /** @description As a rule of RBAC says it */
                right: string;
                allowed: boolean;
                /** @description What it says with it */
                use: string;
            }[];
            /** @description As kubectl apply takes it */
            cluster_role: {
                [key: string]: unknown;
            };
        };
        OperatorMachine: {
            /** Format: uuid */
            id: string;
            cluster_id: string;
            name: string;
            /** @enum {string} */
            lifecycle_state: "registered" | "admitted" | "quarantined";
            gpu_model?: string;
            gpu_count?: number;
            cpu_cores?: number;
            memory_gib?: number;
            ready?: boolean;
            phase?: string;
            /** @description GPUs that jobs or pods hold; left out - not known */
            gpus_in_use?: number;
            /** @description Why it takes no work, where a reason was given */
            reason?: string;
            /** @description It has not been reported lately: what is said of it is old */
            stale?: boolean;
            observed_at?: components["schemas"]["Time"];
            created_at: components["schemas"]["Time"];
            updated_at: components["schemas"]["Time"];
        };
        /** @description Nodes of a cluster set aside for its organization */
        Reservation: {
            id: string;
            organization_id: string;
            cluster_id: string;
            node_count: number;
        };
        StorageQuote: {
            id: string;
            organization_id: string;
            target_cluster_id: string;
            /** @enum {string} */
            storage_type: "ceph" | "nfs";
            /** @description What is added */
            bytes: number;
            /** @description What accepted purchases come to now */
            current_bytes: number;
            /** @description What they would come to */
            total_bytes: number;
            created_at: components["schemas"]["Time"];
            expires_at: components["schemas"]["Time"];
        };
        StoragePurchase: {
            id: string;
            organization_id: string;
            target_cluster_id: string;
            /** @enum {string} */
            storage_type: "ceph" | "nfs";
            bytes: number;
            quote_id: string;
            /** @enum {string} */
            state: "requested" | "active" | "declined";
            created_by_user_id: string;
            created_at: components["schemas"]["Time"];
        };
        Session: {
            id: string;
            login_name: string;
            cluster_id: string;
            user_id: string;
            username: string;
            key_id: string;
            fingerprint: string;
            remote_address: string;
            login_node: string;
            /** @description The Slurm job that it runs in, as squeue prints it; left out: on the login node, or not among the jobs of the person that the cluster reported */
            job?: string;
            /** @description The node of the job */
            job_node?: string;
            opened_at: components["schemas"]["Time"];
            channels: number;
            bytes_up: number;
            bytes_down: number;
        };
        /** @description An SSH session that is over. What is not known, for example because the service was cut off, is left out. */
        PastSession: {
            /** @description The number of the entry of its end in the audit trail */
            seq: number;
            id: string;
            cluster_id: string;
            user_id: string;
            username: string;
            key_id: string;
            fingerprint: string;
            remote_address: string;
            login_node: string;
            /** @description The Slurm job that it runs in, as squeue prints it; left out: on the login node, or not among the jobs of the person that the cluster reported */
            job?: string;
            /** @description The node of the job */
            job_node?: string;
            opened_at: components["schemas"]["Time"];
            closed_at: components["schemas"]["Time"];
            end_reason: string;
            /** @description From the person to the login node */
            bytes_up?: number;
            bytes_down?: number;
            /** @description How many there were: shells, file transfers, commands and forwards */
            channels?: number;
            shells?: number;
            /** @description SFTP */
            file_transfers?: number;
            command_count?: number;
            /** @description The first twenty, each cut after 200 characters */
            commands?: string[];
            forward_count?: number;
            /** @description Where to, "host:port", the first twenty, each once */
            forwards?: string[];
        };
        KeyCluster: {
            cluster_id: string;
            cluster_name: string;
            /**
             * Format: date-time
             * @description When the cluster first reported that it does not have the key; null: not yet
             */
            dropped_at: string | null;
        };
        AuditEntry: {
            seq: number;
            at: components["schemas"]["Time"];
            actor_user_id: string;
            actor_email: string;
            /** @description This and the other names: as they are now, erased people by their pseudonyms */
            actor_name?: string;
            command_id?: string;
            operation: string;
            target: string;
            organization_id?: string;
            organization_name?: string;
            cluster_id?: string;
            cluster_name?: string;
            /** @description The person it was done to */
            subject_user_id?: string;
            subject_email?: string;
            subject_name?: string;
            reason: string;
            source_address: string;
            /** @description `done`, or `refused` and the code */
            result: string;
            /** @description What changed, for people */
            details: string;
            /** @description SHA-256 over the hash of the entry before and this one */
            hash: string;
            redaction?: components["schemas"]["AuditRedaction"];
        };
        /** @description There where texts of the entry were replaced, as when a person was erased, or where the chain broke and that was accepted on the host. Its hash is still that of the entry as it was. */
        AuditRedaction: {
            at: components["schemas"]["Time"];
            /**
             * @description Of a break that was accepted; entries before this one can be missing
             * @constant
             */
            accepted?: true;
            /** @description Which key signed it, as `ed25519:` and the public key */
            key: string;
            /** @description Ed25519 over the line `andromeda audit redaction` (of a break, `andromeda audit accepted break`) and a line each for seq, the hash of the entry before, the hash of this one, the SHA-256 of this one as it is now behind an empty hash, and at; base64 */
            signature: string;
        };
        SignedAuditHead: {
            /** @description The number of the last entry that it covers */
            seq: number;
            /** @description The hash of that entry */
            hash: string;
            at: components["schemas"]["Time"];
            /** @description Which key signed it, as `ed25519:` and the public key */
            key: string;
            /** @description Ed25519 over the line `andromeda audit head` and a line each for seq, hash and at; base64 */
            signature: string;
        };
        /** @description An installation as a file. Its names are camelCase, as people write it. */
        Lab: {
            users?: components["schemas"]["LabUser"][];
            organizations?: components["schemas"]["LabOrganization"][];
            clusters?: components["schemas"]["LabCluster"][];
            grants?: components["schemas"]["LabGrant"][];
        };
        LabUser: {
            email: components["schemas"]["Email"];
            name?: components["schemas"]["Name"];
            staff?: components["schemas"]["StaffKeys"];
        };
        LabOrganization: {
            slug: string;
            name: components["schemas"]["Name"];
            autoJoinDomains?: components["schemas"]["Domains"];
            maxHoursWithoutSignIn?: components["schemas"]["SignInHours"];
            members?: components["schemas"]["LabMember"][];
            /** @description Teams, which are groups on the organization's Slurm clusters */
            groups?: components["schemas"]["LabGroup"][];
        };
        Team: {
            name: string;
            gid: number;
            /** @description Everyone in the organization is in it */
            everyone: boolean;
            members: {
                user_id: string;
                email: string;
                username: string;
            }[];
        };
        LabGroup: {
            name: string;
            /** @description Left out - the next one. A group that hosts have with this name and number is adopted */
            gid?: number;
            /** @description Left out - everyone in the organization */
            members?: components["schemas"]["Email"][];
        };
        LabMember: {
            email: components["schemas"]["Email"];
            /** @enum {string} */
            role: "owner" | "admin" | "member";
            username?: string;
            /** @description The number that the account has on hosts already; left out - allocated */
            uid?: number;
            /** @description Of the primary group; left out - as the uid */
            gid?: number;
            /** @description Public keys that the person has already, a line each; none is removed because it is left out */
            keys?: string[];
            permissions?: ("clusters.read" | "clusters.ssh" | "clusters.ssh.admin" | "clusters.kubernetes" | "clusters.kubernetes.admin" | "clusters.configure" | "members.manage" | "reservations.read")[];
        };
        LabCluster: {
            name: string;
            /** @description A UUID; left out - one is made */
            id?: string;
            /** @description A slug */
            organization: string;
            site?: {
                id: string;
                name: string;
            };
            /**
             * @description slurm and sunk are the same
             * @enum {string}
             */
            scheduler?: "slurm" | "sunk" | "kubernetes";
            /** @description Nodes set aside for the organization; 0 ends the reservation */
            reservedNodes?: number;
            /** @description Web pages about it, such as of utilisation */
            links?: components["schemas"]["ClusterLink"][];
            simulated?: components["schemas"]["LabSimulated"];
            slurm?: components["schemas"]["LabSlurm"];
            kubernetes?: components["schemas"]["LabKubernetes"];
        };
        ClusterLink: {
            name: string;
            url: string;
        };
        /** @description Where the API server is, and how the service is let in there. Files are read where the service runs */
        LabKubernetes: {
            /** @description A file */
            kubeconfig?: string;
            /** @description Of the kubeconfig; left out - its current one */
            context?: string;
            /** @description In place of a kubeconfig */
            server?: string;
            /** @description A file in PEM; left out - everyone trusts the server */
            certificateAuthority?: string;
            /** @description A file */
            tokenFile?: string;
            /** @description A file in PEM */
            clientCertificate?: string;
            /** @description A file in PEM */
            clientKey?: string;
            /** @description The API server as people reach it; left out - as the service does */
            publicServer?: string;
            /** @description As the --oidc-username-prefix of the API server; - for none */
            usernamePrefix?: string;
            /** @description The CephFilesystemSubVolumeGroup whose quota is the cluster's; left out - the only one */
            subVolumeGroup?: string;
        };
        /** @description An existing Slurm cluster, and how its hosts are reached and restarted */
        LabSlurm: {
            /**
             * @description PerUser - each person has their own login node, with {username} in its host
             * @enum {string}
             */
            loginMode?: "Shared" | "PerUser";
            login: {
                name: string;
                host: string;
                port?: number;
                hostKey: string;
                local?: boolean;
                accounts?: components["schemas"]["LabSlurmAccounts"];
                via?: components["schemas"]["LabSlurmVia"];
            }[];
            controller: components["schemas"]["LabSlurmHost"];
            accounting?: components["schemas"]["LabSlurmAccounting"];
            compute?: components["schemas"]["LabSlurmHost"];
            /** @description Slurm nodes that slurm.conf still names and that do not come back - nothing waits for them */
            retired?: string[];
            /** @description The Slurm node that gets a configuration first; left out - one without jobs */
            trialNode?: string;
            /** @description The account that manages the hosts, which is root or may use sudo without a password */
            manage?: {
                user?: string;
                /** @description A private key, where the service runs */
                identityFile?: string;
            };
            /** @description Left out - /etc/slurm/slurm.conf */
            configFile?: string;
            /** @description Accounts that hosts have with the names and numbers of members become ours; left out - they are named and not touched */
            adopt?: boolean;
            /** @description Usernames of people in sudo, docker or the like who are adopted too; left out - none */
            adoptPrivileged?: string[];
            /**
             * @description live - nothing is restarted that need not be
             * @enum {string}
             */
            rollout?: "restart" | "live";
            /** @description People whom the gateway has not met yet log in to the login nodes past it, with their own keys */
            direct?: {
                /** @description The last day, in UTC, such as 2027-01-31 */
                until: string;
                /** @description Accounts of the site that keep their keys for good */
                services?: string[];
            };
            /** @description Shell commands that run on the host itself, with the name of the Slurm node for {name} */
            commands?: {
                restartLogin?: string;
                restartController?: string;
                restartAccounting?: string;
                restartCompute?: string;
                /** @description Makes the home of {username}, who has {uid} and {gid}, on the host of homes or - without one - on the controller */
                makeHome?: string;
            };
            /** @description The file server that makes homes; left out - each host makes them in /home */
            homes?: {
                host?: string;
                port?: number;
                hostKey?: string;
                local?: boolean;
                accounts?: components["schemas"]["LabSlurmAccounts"];
                via?: components["schemas"]["LabSlurmVia"];
                /** @description The directory with homes, there */
                path: string;
            };
        };
        /** @description A host, over SSH or - with local - the one that the service runs on; of compute nodes, {name} is the name of the Slurm node */
        LabSlurmHost: {
            host?: string;
            port?: number;
            /** @description In OpenSSH format; of compute nodes left out - as first met */
            hostKey?: string;
            local?: boolean;
            accounts?: components["schemas"]["LabSlurmAccounts"];
            via?: components["schemas"]["LabSlurmVia"];
        };
        /**
         * @description Where the people of the host come from, left out - files; a directory is the site's, and nothing is changed in it
         * @enum {string}
         */
        LabSlurmAccounts: "files" | "copied" | "directory";
        /** @description The host that it is reached through, as with ssh -J: controller, the name of a login node, or another host */
        LabSlurmVia: string | {
            host: string;
            port?: number;
            hostKey: string;
        };
        /** @description Where slurmdbd runs, left out - on the controller; and the Slurm account of the organization's people. Values that were set by hand stay */
        LabSlurmAccounting: {
            host?: string;
            port?: number;
            hostKey?: string;
            local?: boolean;
            accounts?: components["schemas"]["LabSlurmAccounts"];
            via?: components["schemas"]["LabSlurmVia"];
            /** @description Left out - the slug of the organization. One that is there already keeps its people */
            account?: string;
            /** @description The account that a new one is below */
            parent?: string;
            fairshare?: number;
            defaultQos?: components["schemas"]["SlurmQos"];
            qos?: components["schemas"]["SlurmQos"][];
            /** @description Of each person */
            maxJobs?: number;
            grpTres?: components["schemas"]["SlurmTres"];
            roles?: {
                admin?: components["schemas"]["LabSlurmLimits"];
            };
            /**
             * @description Those with clusters.ssh.admin coordinate the account
             * @enum {string}
             */
            coordinators?: "admins";
        };
        /** @description Of people with clusters.ssh.admin, in place of the account's */
        LabSlurmLimits: {
            fairshare?: number;
            defaultQos?: components["schemas"]["SlurmQos"];
            qos?: components["schemas"]["SlurmQos"][];
            maxJobs?: number;
            grpTres?: components["schemas"]["SlurmTres"];
        };
        SlurmQos: string;
        /** @description All together, by gpu, cpu, mem (MiB), node or another resource, such as gres/shard */
        SlurmTres: {
            [key: string]: number;
        };
        LabSimulated: {
            computeNodes: number;
            gpusPerNode: number;
            /** @description How long applying takes */
            applyMs?: number;
            /** @description How long its control plane takes to start */
            provisionMs?: number;
            /** @description Jobs that run there */
            runningJobs?: components["schemas"]["RunningJob"][];
            /** @description Jobs that wait, the first to start first */
            pendingJobs?: components["schemas"]["SimulatedPendingJob"][];
            /** @description Its jobs run again after the compute nodes restarted */
            requeue?: boolean;
            /** @description What every compute node has */
            machine?: {
                gpuModel?: string;
                cpuCores?: number;
                memoryGib?: number;
                ibSpeed?: string;
            };
            /** @description How many compute nodes take no work */
            nodesDown?: number;
            /** @description How many of the others, the last ones, take no new work */
            nodesDrained?: number;
            /** @description Why they were drained */
            drainReason?: string;
            /** @description How many GPUs jobs hold, besides those of runningJobs */
            gpusInUse?: number;
            /**
             * @description Whether everyone uses one login node, or each person has their own
             * @enum {string}
             */
            loginMode?: "Shared" | "PerUser";
            /** @description It does not answer, and reports nothing */
            silent?: boolean;
            /** @description In words, what keeps it from applying anything */
            failure?: string;
            schedulerFault?: components["schemas"]["LabFault"];
            kubernetes?: {
                version?: string;
                kubeletVersion?: string;
                server?: string;
                /** @description PEM */
                certificateAuthority?: string;
                ready?: boolean;
            };
            storage?: {
                types: ("ceph" | "weka" | "nfs")[];
                quotaBytes?: number;
                /** @description What the shared volume of a Slurm cluster asks for; left out - 100 GiB */
                sharedVolumeBytes?: number;
                fault?: components["schemas"]["LabFault"];
            };
        };
        /** @description Why a part of a simulated cluster does not work */
        LabFault: {
            reason: string;
            message: string;
        };
        LabGrant: {
            user: components["schemas"]["Email"];
            cluster: string;
            /** @enum {string} */
            relation: "kubernetes.viewer" | "kubernetes.developer" | "kubernetes.admin";
            namespace?: components["schemas"]["Namespace"];
            roleId?: components["schemas"]["RoleId"];
            /** @description The roleId may give more than the relation. Without it, a role that is known to give more is refused */
            allowWiderRole?: boolean;
            expiresAt?: string;
        };
        RunningJob: {
            id: string;
            user: string;
            name: string;
            machines: string[];
        };
        SimulatedPendingJob: {
            id: string;
            user: string;
            name: string;
            /** @description Slurm's word for why it waits, such as Resources */
            reason: string;
            gpus?: number;
            /** @description RFC 3339 */
            startsAt?: string;
        };
        GroupRule: {
            group: string;
            /** @description Its slug */
            organization: string;
            /**
             * @description At least this
             * @default member
             * @enum {string}
             */
            role: "member" | "admin" | "owner";
            /** @description Only for members */
            permissions?: string[];
        };
        GroupPeople: {
            /** @description Active people of whom the issuer has said groups */
            known: number;
            /** @description Active people of whom it has not */
            unknown: number;
        };
        Groups: {
            /** @description Of tokens */
            claim: string;
            people: components["schemas"]["GroupPeople"];
            groups: {
                group: string;
                /** @description How many are in it */
                people: number;
                rules: components["schemas"]["GroupRule"][];
            }[];
        };
        GroupPlan: {
            people: components["schemas"]["GroupPeople"];
            changes: {
                /** @description Its slug */
                organization: string;
                /** @description `membership`, a permission, or a role such as `role admin` */
                what: string;
                /** @description How many people gain it */
                gain: number;
                lose: number;
            }[];
            /** @description Addresses of last owners whom no rule takes away */
            kept_owners: string[];
            restarts: components["schemas"]["LabRestart"][];
        };
        LabPlan: {
            changes: components["schemas"]["LabChange"][];
            restarts: components["schemas"]["LabRestart"][];
        };
        LabChange: {
            /** @enum {string} */
            action: "create" | "update" | "remove";
            /** @enum {string} */
            kind: "person" | "organization" | "member" | "team" | "cluster" | "grant";
            name: string;
            /** @description What changes, for people */
            details: string;
        };
        LabRestart: {
            cluster_id: string;
            cluster_name: string;
            /** @description Login accounts that appear */
            added: string[];
            removed: string[];
            /**
             * @description Nothing is restarted for people who come and go; only the jobs of those who go end
             * @enum {string}
             */
            rollout?: "live";
            /** @description In this order */
            restarts: ("login" | "controller" | "accounting" | "compute")[];
            ended_jobs: components["schemas"]["RunningJob"][];
            /** @description How many more end */
            other_jobs?: number;
            /**
             * @description The cluster does not say which jobs run; any of them may end
             * @enum {boolean}
             */
            unknown_jobs?: true;
            direct?: components["schemas"]["DirectLogins"];
        };
        /** Format: date-time */
        Time: string;
    };
    responses: {
        /** @description A page, the last that ended first; the last page when it has fewer than `limit` */
        PastSessions: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    sessions: components["schemas"]["PastSession"][];
                };
            };
        };
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
                "application/json": components["schemas"]["MemberPermissions"];
            };
        };
        /** @description The request */
        AccessRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["AccessRequest"];
            };
        };
        /** @description The requests */
        AccessRequests: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    requests: components["schemas"]["AccessRequest"][];
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
        TeamName: string;
        ClusterID: string;
        KeyID: string;
        /** @description RFC 3339: as it was at this time, without `cluster`; people are called as they are now. Needs `members.manage` or `staff.read`; 400 for a time of which not everything is known any more, or that is to come. */
        ReviewAt: string;
        /** @description true: only members to whose access the last review gave an end that is to come, without `at`. Needs `members.manage` or `staff.read` */
        ReviewDue: boolean;
        /** @description Sessions that had not ended before */
        SessionsFrom: components["schemas"]["Time"];
        /** @description Sessions that were opened before */
        SessionsTo: components["schemas"]["Time"];
        SessionsLimit: number;
        /** @description The `seq` of the last session of the page before */
        SessionsAfter: number;
        /** @description The same key and body again answers with the first result. */
        IdempotencyKey: string;
        /** @description Kept with the change. Beyond ASCII in UTF-8. */
        AuditReason: string;
    };
    requestBodies: {
        Member: {
            content: {
                "application/json": {
                    email: components["schemas"]["Email"];
                    /** @description For an account that is made now */
                    name?: string;
                    /** @enum {string} */
                    role?: "owner" | "admin" | "member";
                    /** @description Left out - one is made from the address */
                    username?: string;
                    permissions?: string[];
                    expires_at?: components["schemas"]["NewEnds"];
                };
            };
        };
        MemberRole: {
            content: {
                "application/json": {
                    /** @enum {string} */
                    role: "owner" | "admin" | "member";
                };
            };
        };
        MemberUsername: {
            content: {
                "application/json": {
                    username: string;
                };
            };
        };
        TeamMembers: {
            content: {
                "application/json": {
                    /** @description User IDs of members of the organization */
                    members: string[];
                };
            };
        };
        MemberPermissions: {
            content: {
                "application/json": {
                    permissions: string[];
                    /** @description When keys of the set end by themselves; null: not at all. A key that is left out here keeps the end that it has; one that is new has none */
                    expires_at?: components["schemas"]["NewEnds"];
                };
            };
        };
        SshKey: {
            content: {
                "application/json": {
                    /**
                     * @description One Ed25519 public key in the format of OpenSSH or of RFC 4716; also one in a security key (`ed25519-sk`) where the installation accepts those
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
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
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
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
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
    planSshKeyChange: {
        parameters: {
            query?: {
                /** @description The ID of the key; left out: another one is registered */
                revoke?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The plan */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemberPlan"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    revokeSshKey: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                keyID: components["parameters"]["KeyID"];
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
    renameSshKey: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                keyID: components["parameters"]["KeyID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    label: string;
                };
            };
        };
        responses: {
            /** @description The key as it is called now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ssh_key: components["schemas"]["SshKey"];
                        command_id: string;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listKeyClusters: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                keyID: components["parameters"]["KeyID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description By name */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        clusters: components["schemas"]["KeyCluster"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listMySessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        sessions: components["schemas"]["Session"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    closeMySession: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                sessionID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session as it was */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listMyPastSessions: {
        parameters: {
            query?: {
                /** @description Sessions that had not ended before */
                from?: components["parameters"]["SessionsFrom"];
                /** @description Sessions that were opened before */
                to?: components["parameters"]["SessionsTo"];
                limit?: components["parameters"]["SessionsLimit"];
                /** @description The `seq` of the last session of the page before */
                after?: components["parameters"]["SessionsAfter"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["PastSessions"];
            default: components["responses"]["Error"];
        };
    };
    listMyRefusals: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        refusals: {
                            at: components["schemas"]["Time"];
                            cluster_id: string | null;
                            key_id: string;
                            source_address: string;
                            /** @description The message that the person saw */
                            message: string;
                        }[];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    setLoginPreferences: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
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
    listMyKubernetesAccess: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The grants, oldest first, with the cluster and the organization that each is for */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        grants: components["schemas"]["GrantAccess"][];
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
    addMember: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["Member"];
        responses: {
            /** @description The membership */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Membership"];
                };
            };
            /** @description The membership */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Membership"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    planMemberChanges: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    changes: components["schemas"]["MemberChange"][];
                };
            };
        };
        responses: {
            /** @description What would be done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemberPlan"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listMemberAccess: {
        parameters: {
            query: {
                /** @description User IDs, at most a hundred, with commas between them */
                user_ids: string;
            };
            header?: never;
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In the order asked for */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemberAccessList"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    reviewAccess: {
        parameters: {
            query?: {
                /** @description RFC 3339: as it was at this time, without `cluster`; people are called as they are now. Needs `members.manage` or `staff.read`; 400 for a time of which not everything is known any more, or that is to come. */
                at?: components["parameters"]["ReviewAt"];
                /** @description true: only members to whose access the last review gave an end that is to come, without `at`. Needs `members.manage` or `staff.read` */
                due?: components["parameters"]["ReviewDue"];
                /** @description A cluster ID: only people with access to this cluster, with their ways in */
                cluster?: string;
                /** @description Only people with this text in their name, address, user name, role, permissions or grants */
                filter?: string;
                /** @description By a fact of the person, or by who holds a permission. Equal ones are in order of their addresses */
                sort?: "name" | "email" | "username" | "role" | "member_since" | "last_sign_in" | "grants" | "ends" | "account" | "opens" | "ways" | "clusters.read" | "clusters.ssh" | "clusters.ssh.admin" | "clusters.kubernetes" | "clusters.kubernetes.admin" | "clusters.configure" | "members.manage" | "reservations.read";
                order?: "ascending" | "descending";
                limit?: number;
                /** @description The `next_page_token` of the page before */
                after?: string;
            };
            header?: never;
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessReview"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    saveAccessReview: {
        parameters: {
            query?: {
                /** @description RFC 3339: as it was at this time, without `cluster`; people are called as they are now. Needs `members.manage` or `staff.read`; 400 for a time of which not everything is known any more, or that is to come. */
                at?: components["parameters"]["ReviewAt"];
                /** @description true: only members to whose access the last review gave an end that is to come, without `at`. Needs `members.manage` or `staff.read` */
                due?: components["parameters"]["ReviewDue"];
                /** @description A cluster ID: only people with access to this cluster, with their ways in */
                cluster?: string;
                /** @description Only people with this text in their name, address, user name, role, permissions or grants */
                filter?: string;
                /** @description By a fact of the person, or by who holds a permission. Equal ones are in order of their addresses */
                sort?: "name" | "email" | "username" | "role" | "member_since" | "last_sign_in" | "grants" | "ends" | "account" | "opens" | "ways" | "clusters.read" | "clusters.ssh" | "clusters.ssh.admin" | "clusters.kubernetes" | "clusters.kubernetes.admin" | "clusters.configure" | "members.manage" | "reservations.read";
                order?: "ascending" | "descending";
            };
            header?: never;
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The table */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/csv": string;
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listOrganizationGrants: {
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
            /** @description Oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        grants: components["schemas"]["OperatorGrant"][];
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
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["MemberPermissions"];
        responses: {
            200: components["responses"]["MemberPermissions"];
            default: components["responses"]["Error"];
        };
    };
    getMyAccess: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description By organization, then by name */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        clusters: components["schemas"]["ClusterUse"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listMyAccessRequests: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["AccessRequests"];
            default: components["responses"]["Error"];
        };
    };
    withdrawAccessRequest: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                requestID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["AccessRequest"];
            default: components["responses"]["Error"];
        };
    };
    listAccessRequests: {
        parameters: {
            query?: {
                /** @description open: what waits for a decision, oldest first (as when left out). all: what was decided lately too, newest first, at most 200 */
                state?: "open" | "all";
            };
            header?: never;
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["AccessRequests"];
            default: components["responses"]["Error"];
        };
    };
    requestAccess: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    permissions: string[];
                    /** @description On account of which cluster */
                    cluster_id?: string;
                    /** @description For how long, from the approval on; left out: without an end */
                    hours?: number;
                };
            };
        };
        responses: {
            200: components["responses"]["AccessRequest"];
            201: components["responses"]["AccessRequest"];
            default: components["responses"]["Error"];
        };
    };
    approveAccessRequest: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
                requestID: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: date-time
                     * @description Another term; null: without an end. Left out: as asked
                     */
                    expires_at?: string | null;
                };
            };
        };
        responses: {
            200: components["responses"]["AccessRequest"];
            default: components["responses"]["Error"];
        };
    };
    declineAccessRequest: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
                requestID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["AccessRequest"];
            default: components["responses"]["Error"];
        };
    };
    listMemberPermissions: {
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
            /** @description The members */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        members: components["schemas"]["MemberPermissions"][];
                    };
                };
            };
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
    setMemberRole: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["MemberRole"];
        responses: {
            /** @description The membership */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Membership"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    setMemberUsername: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["MemberUsername"];
        responses: {
            /** @description The membership */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Membership"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    removeMember: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Who is no longer a member */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RemovedMember"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listTeams: {
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
            /** @description By name, all in one response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        teams: components["schemas"]["Team"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    setTeam: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
                team: components["parameters"]["TeamName"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["TeamMembers"];
        responses: {
            /** @description The team */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Team"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    removeTeam: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
                team: components["parameters"]["TeamName"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is no team any more */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        name: string;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getMemberKubernetesAccess: {
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
            /** @description The organization's clusters in service that have a Kubernetes side of their own */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        clusters: components["schemas"]["MemberKubernetesAccess"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListOrganizations: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        organizations: components["schemas"]["OperatorOrganization"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorCreateOrganization: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    slug: string;
                    display_name: components["schemas"]["Name"];
                    owner_email: components["schemas"]["Email"];
                    owner_username?: string;
                    auto_join_domains?: components["schemas"]["Domains"];
                };
            };
        };
        responses: {
            /** @description The organization */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorOrganization"];
                };
            };
            /** @description The organization */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorOrganization"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorUpdateOrganization: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    display_name?: components["schemas"]["Name"];
                    auto_join_domains?: components["schemas"]["Domains"];
                    /** @description How long access of the members lasts without a sign-in, where that is less than the installation's; null for as long */
                    max_hours_without_sign_in?: components["schemas"]["SignInHours"] | null;
                };
            };
        };
        responses: {
            /** @description The organization */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorOrganization"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListPeople: {
        parameters: {
            query?: {
                email?: string;
                limit?: number;
                /** @description The `next_page_token` of the page before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        people: components["schemas"]["Person"][];
                        next_page_token?: string;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorCreatePerson: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    email: components["schemas"]["Email"];
                    name?: components["schemas"]["Name"];
                    staff_keys?: components["schemas"]["StaffKeys"];
                };
            };
        };
        responses: {
            /** @description The person */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
            /** @description The person */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorSetStaffKeys: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    staff_keys: components["schemas"]["StaffKeys"];
                };
            };
        };
        responses: {
            /** @description The person */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorSetPassword: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    password: string;
                };
            };
        };
        responses: {
            /** @description The person */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorCreatePasswordLink: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The link */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        url: string;
                        expires_at: components["schemas"]["Time"];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorResetSecondFactor: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The person */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListIdentities: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identities"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorRebindIdentity: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description As the tokens name it */
                    issuer: string;
                    /** @description The sub of its tokens */
                    subject?: string;
                };
            };
        };
        responses: {
            /** @description The identities from now on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identities"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorUnbindIdentity: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description As the tokens name it */
                    issuer: string;
                    /** @description The sub of its tokens */
                    subject: string;
                };
            };
        };
        responses: {
            /** @description The identities from now on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identities"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorSetPersonEmail: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    email: components["schemas"]["Email"];
                };
            };
        };
        responses: {
            /** @description The person */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorSetSignInExemption: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    until: components["schemas"]["Time"] | null;
                };
            };
        };
        responses: {
            /** @description The person */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorErasePerson: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The person, who is a pseudonym now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorPlanDeactivation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The plan */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemberPlan"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorDeactivatePerson: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The person */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorReactivatePerson: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                userID: components["parameters"]["UserID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The person */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListGrants: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        grants: components["schemas"]["OperatorGrant"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorCreateGrant: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    email: components["schemas"]["Email"];
                    cluster_id: string;
                    /** @enum {string} */
                    relation: "kubernetes.viewer" | "kubernetes.developer" | "kubernetes.admin";
                    scope?: components["schemas"]["Namespace"];
                    role_id?: components["schemas"]["RoleId"];
                    /** @description The role_id may give more than the relation. Without it, a role that is known to give more is refused with 400 */
                    allow_wider_role?: boolean;
                    expires_at?: components["schemas"]["Time"];
                };
            };
        };
        responses: {
            /** @description The grant */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorGrant"];
                };
            };
            /** @description The grant */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorGrant"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorRevokeGrant: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                grantID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The grant as it was */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorGrant"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListClusters: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        clusters: components["schemas"]["OperatorCluster"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorCreateCluster: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LabCluster"];
            };
        };
        responses: {
            /** @description The cluster */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorCluster"];
                };
            };
            /** @description The cluster */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorCluster"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorReleaseCluster: {
        parameters: {
            query?: {
                /** @description Do not wait for what is left there to be taken away */
                abandon?: boolean;
                /** @description Adopted accounts of members get back what they had before */
                hand_back?: boolean;
            };
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
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
                    "application/json": components["schemas"]["OperatorCluster"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorCheckCluster: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                clusterID: components["parameters"]["ClusterID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What it said, and the smallest ClusterRole that has every right */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClusterCheck"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorSurveyCluster: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                clusterID: components["parameters"]["ClusterID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    names?: string[];
                };
            };
        };
        responses: {
            /** @description What is there, and what that means for adopting it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClusterSurvey"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListMachines: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                clusterID: components["parameters"]["ClusterID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description By name */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        machines: components["schemas"]["OperatorMachine"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorAdmitMachine: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                machineID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The machine */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorMachine"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorQuarantineMachine: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                machineID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The machine */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorMachine"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listReservations: {
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
            /** @description In order of the clusters' creation */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        reservations: components["schemas"]["Reservation"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createPurchase: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    target_cluster_id: string;
                    quote_id: string;
                };
            };
        };
        responses: {
            /** @description The purchase */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoragePurchase"];
                };
            };
            /** @description The purchase */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoragePurchase"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    quotePurchase: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                orgID: components["parameters"]["OrgID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    target_cluster_id: string;
                    /** @enum {string} */
                    storage_type: "ceph" | "nfs";
                    /** @description Bytes to add */
                    bytes: number;
                };
            };
        };
        responses: {
            /** @description The quote */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StorageQuote"];
                };
            };
            /** @description The quote */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StorageQuote"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListPurchases: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        purchases: components["schemas"]["StoragePurchase"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorAcceptPurchase: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                purchaseID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The purchase */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoragePurchase"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorDeclinePurchase: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                purchaseID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The purchase */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoragePurchase"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        sessions: components["schemas"]["Session"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListPastSessions: {
        parameters: {
            query?: {
                /** @description A user ID or an email address */
                person?: string;
                /** @description A cluster ID or name */
                cluster?: string;
                /** @description Where people came from */
                address?: string;
                /** @description The ID of an SSH key, or its fingerprint */
                key?: string;
                /** @description Sessions that had not ended before */
                from?: components["parameters"]["SessionsFrom"];
                /** @description Sessions that were opened before */
                to?: components["parameters"]["SessionsTo"];
                limit?: components["parameters"]["SessionsLimit"];
                /** @description The `seq` of the last session of the page before */
                after?: components["parameters"]["SessionsAfter"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["PastSessions"];
            default: components["responses"]["Error"];
        };
    };
    operatorCloseSession: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path: {
                sessionID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session as it was */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListAuditEntries: {
        parameters: {
            query?: {
                /** @description A user ID or an email address: who did it, or to whom it was done */
                person?: string;
                /** @description A cluster ID or name */
                cluster?: string;
                /** @description What was done, such as `revokeSshKey`; with `*` at the end, everything that begins so, such as `ssh.*` */
                operation?: string;
                /** @description Only what was done, or only what was refused */
                result?: "done" | "refused";
                /** @description Not before */
                from?: components["schemas"]["Time"];
                /** @description Before */
                to?: components["schemas"]["Time"];
                limit?: number;
                /** @description Which entries come first */
                order?: "oldest" | "newest";
                /** @description The `seq` of the last entry of the page before */
                after?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page; the last one when it has fewer than `limit` */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        entries: components["schemas"]["AuditEntry"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorGetAuditHead: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The head */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignedAuditHead"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListAuditHeads: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The heads, and the key that this installation signs with */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description `ed25519:` and the public key (SubjectPublicKeyInfo, base64) */
                        key: string;
                        /** @description Whose signatures count as well: of keys before it, and of the one that is to take its place */
                        other_keys: string[];
                        heads: components["schemas"]["SignedAuditHead"][];
                        /** @description Where the trail begins, where entries before were deleted; signed over the line `andromeda audit checkpoint` and a line each for seq, hash and at */
                        checkpoint?: components["schemas"]["SignedAuditHead"];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorGetGateway: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Names and keys */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        hostname: string;
                        port: number;
                        /** @description What it shows to people */
                        host_key: string;
                        /** @description Announced to take its place, or in its place before */
                        other_host_keys: string[];
                        /** @description What it shows to login nodes */
                        public_key: string;
                        /** @description To be trusted besides, while one key takes the place of another */
                        other_public_keys: string[];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListProblems: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Newest first; what has no known beginning last */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        problems: components["schemas"]["Problem"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorGetInstallation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description As the service that answers has taken them up */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Installation"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListServers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In the order in which they were started */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        servers: components["schemas"]["Server"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorListGroups: {
        parameters: {
            query?: {
                /** @description Only the groups of this person */
                email?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Those that rules name first, then the largest; at most 10,000 */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Groups"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorPlanGroups: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description All of them: they would take the place of those in force */
                    rules: components["schemas"]["GroupRule"][];
                };
            };
        };
        responses: {
            /** @description What would change */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupPlan"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorExportLab: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lab */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lab"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorApplyLab: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    lab: components["schemas"]["Lab"];
                    /** @default false */
                    prune?: boolean;
                };
            };
        };
        responses: {
            /** @description What was done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabPlan"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    operatorPlanLab: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    lab: components["schemas"]["Lab"];
                    /** @default false */
                    prune?: boolean;
                };
            };
        };
        responses: {
            /** @description What would be done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabPlan"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    retireOrganization: {
        parameters: {
            query?: never;
            header: {
                /** @description The same key and body again answers with the first result. */
                "Idempotency-Key": components["parameters"]["IdempotencyKey"];
                /** @description Kept with the change. Beyond ASCII in UTF-8. */
                "Audit-Reason": components["parameters"]["AuditReason"];
            };
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
}
