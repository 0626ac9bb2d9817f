/** The table of the service's own secrets, for several servers on one database: a part of `schema.ts`. */

/** Encrypted with a key that is not in the database. */
export interface SecretTable {
  name: string;
  ciphertext: string;
  key_id: string;
  /** Rises with every change; authenticated with the text. */
  version: number;
  created_at: string;
  updated_at: string;
}

/** Which of the service's keys a server has taken up, and since when. */
export interface ServerKeyTable {
  server_id: string;
  kind: string;
  /** JSON; of `KeysInUse`. */
  in_use: string;
}

export interface SecretSchema {
  secrets: SecretTable;
  server_keys: ServerKeyTable;
}
