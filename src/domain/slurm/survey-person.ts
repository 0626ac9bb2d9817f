/** What a survey of a cluster says: a verdict for each person, in the form that the API shows. */
import type { SlurmUser, SurveyedAccount, SurveyedLogin } from './survey-report.ts';

export const verdictTexts = {
  not_person: 'not a person',
  name: 'the name cannot be one here',
  differs: 'differs between hosts',
  privileged: 'privileged; only with adoptPrivileged',
  home: 'home is elsewhere',
  needs_key: 'adopt; needs an Ed25519 key',
  adopt: 'adopt as is',
} as const;

export type Verdict = keyof typeof verdictTexts;

export interface Judgement {
  verdict: Verdict;
  reasons: string[];
  /** Commands that would mend it; none is run. */
  commands: string[];
}

export interface PersonKey {
  line: string;
  fingerprint: string;
  file: string;
}

export interface PersonKeys {
  /** Ed25519, without options, in this account only. */
  keys: PersonKey[];
  others: (PersonKey & { reason: string })[];
  /** The login nodes on which they could not be read, all of them. */
  unread: string[];
}

/** Every name is of one word, so that the API shows the person as it is. */
export interface SurveyedPerson extends PersonKeys, Judgement {
  username: string;
  uid: number;
  gid: number;
  /** The primary group's name; its number where no host names it. */
  group: string;
  groups: string[];
  name: string;
  /** `owner` and `mode` are null where no login node has it; `closed`: root cannot read it. */
  home: { path: string; owner: number | null; mode: string | null; closed: boolean };
  shell: string;
  source: string;
  password: SurveyedAccount['password'];
  expired: boolean;
  slurm: SlurmUser;
  logins: Omit<SurveyedLogin, 'name'>[];
}

export interface ClusterSurvey {
  /** What concerns the whole cluster, the most important first. */
  notices: string[];
  hosts: { host: string; roles: string[]; fault: string | null }[];
  people: SurveyedPerson[];
}
