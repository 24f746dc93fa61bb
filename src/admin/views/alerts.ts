import { type Static, Type } from 'typebox'
import { RULE_NAMES, RULES } from '../../domain/alerts/rules.ts'
import { Nullable, NullableTimestamp, Timestamp, Uuid } from '../../domain/shapes.ts'

/** Something that a tenant is warned of. */
export const AlertView = Type.Object({
  id: Uuid,
  tenant: Type.String(),
  rule: Type.Enum([...RULE_NAMES]),
  subject: Nullable(Type.String({ description: 'Of source_silent the source, of mrr_drop the currency' })),
  state: Type.Enum(['raised', 'resolved']),
  summary: Type.String({ description: 'In words' }),
  value: Type.Number(),
  threshold: Type.Number(),
  raised_at: Timestamp,
  resolved_at: NullableTimestamp,
})
export type AlertView = Static<typeof AlertView>

const threshold = (rule: keyof typeof RULES) =>
  Nullable(
    Type.Number({ description: `${RULES[rule].means}; from ${RULES[rule].least} to ${RULES[rule].most}` }),
  )

export const AlertRules = {
  lag: threshold('lag'),
  refused_share: threshold('refused_share'),
  dead_letters: threshold('dead_letters'),
  source_silent: threshold('source_silent'),
  mrr_drop: threshold('mrr_drop'),
}

/** From which value on each rule warns; null: it does not. */
export const AlertRulesView = Type.Object({ tenant: Type.String(), ...AlertRules })
export type AlertRulesView = Static<typeof AlertRulesView>
