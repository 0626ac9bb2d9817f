/** The caller, as the Business API knows them. */
import { authorization, type Session, type SignedInUser } from '../session/session.ts';
import { getJson, isObject } from './request.ts';
import { join } from './url.ts';

export type Me = { user: SignedInUser } | { status: number; message?: string };

/** `GET /me` (contract, "Business API"). */
export async function getMe(session: Session, signal?: AbortSignal): Promise<Me> {
  const url = join(session.businessUrl, '/me');
  const { status, body } = await getJson({ url, headers: [authorization(session, url)], signal });
  const user = body?.user;
  if (status === 200 && isObject(user) && typeof user.primary_email === 'string') {
    const { display_name: name, primary_email: email } = user;
    return { user: { name: typeof name === 'string' ? name : '', email } };
  }
  return { status, ...(typeof body?.message === 'string' && { message: body.message }) };
}
