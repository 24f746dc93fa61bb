import type pg from 'pg'

/**
 * The entries of a part of the log as they go into a backup. Where an entry stands is a transaction id, which means
 * nothing in another cluster: what was read needs none and gets 0, what was not keeps it for the order.
 */
export function selectForBackup(table: string, columns: readonly string[]): string {
  const values = columns.map(column => (column === 'xid' ? XID : `l."${column}"`))
  return `select ${values.join(', ')} from "${table}" l left join log_cursors c on c.partition = l.partition`
}

const XID = `case when (l.era, l.xid, l.ord) <= (c.era, c.xid, c.ord) then '0'::xid8 else l.xid end`

/**
 * After a restore: what was not read stands in the present, in its order, and readers stand before it. Returns how many
 * entries that are. Eras stay as they are, if the backup knows of them: the first start begins the next one.
 */
export async function adoptBackup(client: pg.PoolClient): Promise<number> {
  const { rowCount } = await client.query(
    `update log l set xid = pg_current_xact_id(), ord = u.ord
     from (
       select tableoid, ctid, row_number() over (partition by partition order by xid, ord) as ord
       from log where xid <> '0'
     ) u
     where l.tableoid = u.tableoid and l.ctid = u.ctid`,
  )
  await client.query('update log_cursors set xid = pg_current_xact_id(), ord = 0')
  return rowCount ?? 0
}
