/** One certificate for all servers behind the same names: who comes first orders it, and the others take it from there. */
import { parseCertificate } from './files.ts';
import { renewalAt } from './schedule.ts';

/** What is kept for every server. */
export interface SharedCertificate {
  /** The key of the account at the authority, made by `make` where there is none. */
  account(make: () => Promise<Buffer>): Promise<Buffer>;
  /** The certificate that one of them obtained last, and for what. */
  find(): Promise<{ subject: string; pem: Buffer } | undefined>;
  keep(certificate: { subject: string; pem: Buffer }): Promise<void>;
}

/** The certificate that another server has obtained meanwhile, or else what `order` obtains. */
export async function takeOrOrder(
  shared: SharedCertificate,
  { directory, hosts, now }: { directory: string; hosts: readonly string[]; now(): number },
  order: () => Promise<Buffer>,
): Promise<Buffer> {
  const subject = JSON.stringify([directory, hosts]);
  const known = await shared.find();
  // Random 0 is the earliest time at which any server renews: a certificate past it is not the new one.
  if (known?.subject === subject && renewalAt(parseCertificate(known.pem), 0) > now()) return known.pem;
  const pem = await order();
  await shared.keep({ subject, pem });
  return pem;
}
