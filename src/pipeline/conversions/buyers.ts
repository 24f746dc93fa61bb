import { isKnown } from '../../domain/identity/joining.ts'
import type { SalePeople } from '../../store/conversions/conversions.ts'
import { factsOfProfiles, namesOfNodes, undoSaleJoins } from '../../store/identity/identities.ts'
import type { Identities } from '../identity/identity.ts'
import type { Transaction } from '../unit.ts'

/**
 * A sale joins the contact of its order's record with the visitor of the one event that names the order, if that visitor
 * is nobody in particular yet. An order that several visitors named joins nobody: anybody can name an order.
 */
export async function joinBuyers(
  transaction: Transaction,
  identities: Identities,
  sales: SalePeople[],
): Promise<void> {
  const { client } = transaction
  const disputed = sales.flatMap(({ tenantId, orderId, orderState, severalVisitors }) =>
    severalVisitors && orderState !== null && orderId !== null ? [{ tenantId, orderId }] : [],
  )
  if (disputed.length > 0) await undoSaleJoins(client, disputed)
  const open = sales.filter(
    ({ orderState, severalVisitors, eventNode, orderNode }) =>
      orderState === 'live' && !severalVisitors && eventNode !== null && orderNode !== null,
  )
  if (open.length === 0) return
  const nodes = open.flatMap(({ tenantId, eventNode, orderNode }) =>
    [eventNode!, orderNode!].map(node => ({ tenantId, node })),
  )
  const names = new Map(
    (await namesOfNodes(client, nodes)).map(name => [`${name.tenantId} ${name.node}`, name]),
  )
  const meeting = open.flatMap(sale => {
    const visitor = names.get(`${sale.tenantId} ${sale.eventNode}`)
    const buyer = names.get(`${sale.tenantId} ${sale.orderNode}`)
    const isOpen = visitor?.kind === 'visitor' && buyer && visitor.profile !== buyer.profile
    return isOpen ? [{ sale, visitor, buyer }] : []
  })
  if (meeting.length === 0) return
  const facts = await factsOfProfiles(
    client,
    meeting.map(({ visitor }) => visitor),
  )
  const known = new Set(facts.filter(isKnown).map(({ tenantId, profile }) => `${tenantId} ${profile}`))
  await identities.resolve(
    transaction,
    meeting
      .filter(({ visitor }) => !known.has(`${visitor.tenantId} ${visitor.profile}`))
      .map(({ sale, visitor, buyer }) => ({
        tenantId: sale.tenantId,
        identities: [visitor, buyer].map(({ kind, value }) => ({ kind, value })),
        trusted: false,
        cause: { kind: 'sale' as const, id: sale.orderId! },
      })),
  )
}
