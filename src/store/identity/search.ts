import type { Identifier } from '../../domain/identity/identity.ts'
import type { Db } from '../../postgres/database.ts'

type NamedContact = { id: string; profile: number | null; data: string }

/** Contacts whose name, or the last word of it, begins with the text; with whom they are. */
export async function searchContacts(
  db: Db,
  tenantId: number,
  text: string,
  limit: number,
): Promise<NamedContact[]> {
  // Whatever begins with a text lies between it and itself with the greatest character after it, byte by byte.
  const named = (name: string) => {
    const known = `(tenant_id::text || ' ' || ${name}) collate "C"`
    const wanted = `$1::int::text || ' ' || lower($2)`
    return `(select id, data from records
      where ${known} between ${wanted} and ${wanted} || chr(1114111) and entity_type = 'contact' and not deleted
      order by ${known} limit $3)`
  }
  const { rows } = await db.query<NamedContact>(
    `select distinct on (c.id) c.id, c.data::text as data, i.profile from (
       ${named('contact_name(data)')} union all ${named(`split_part(contact_name(data), ' ', -1)`)}
     ) c left join identities i on i.tenant_id = $1 and i.kind = 'contact' and i.value = c.id and i.retired_at is null
     order by c.id limit $3`,
    [tenantId, text, limit],
  )
  return rows
}

export type FoundProfile = Identifier & { profile: number }

/** Who goes by a name that begins with the text; e-mails are in lower case. */
export async function searchProfiles(
  db: Db,
  tenantId: number,
  text: string,
  limit: number,
): Promise<FoundProfile[]> {
  const { rows } = await db.query<FoundProfile>(
    `select i.kind, i.value, i.profile
     from unnest(array['email', 'user', 'contact', 'visitor'], array[lower($2), $2, $2, $2]) with ordinality as n (kind, text, place)
     cross join lateral (
       select kind, value, profile from identities
       where tenant_id = $1 and kind = n.kind and value between n.text and n.text || chr(1114111) and retired_at is null
       order by value limit $3
     ) i order by n.place, i.value limit $3`,
    [tenantId, text, limit],
  )
  return rows
}
