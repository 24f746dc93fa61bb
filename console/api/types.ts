import type {
  Static,
  TArray,
  TInteger,
  TNumber,
  TObject,
  TOptional,
  TProperties,
  TRecord,
  TSchema,
  TUnion,
  TUnsafe,
} from 'typebox'
import type { AlertRulesView } from '../../src/admin/alerts.ts'
import type { BooksView } from '../../src/admin/books.ts'
import type { DeadLetterView, ReplayOrder as ReplayQuery } from '../../src/admin/dead-letters.ts'
import type { DeliveryView } from '../../src/admin/destinations.ts'
import type { ErasurePreview, SuppressionList } from '../../src/admin/erasures.ts'
import type { PersonView } from '../../src/admin/people.ts'
import type { SourceView } from '../../src/admin/sources.ts'
import type { TenantView } from '../../src/admin/tenants.ts'
import type { NewKeyBody } from '../../src/http/admin/schemas.ts'
import type { ChannelBody, CustomerBody, FunnelBody } from '../../src/http/customers/schemas.ts'
import type {
  ConversionBody,
  ConversionSeriesBody,
  EventBody,
  EventOutcomeBody,
  EventSeriesBody,
  VisitorsBody,
} from '../../src/http/events/schemas.ts'
import type { StoredRecord } from '../../src/http/records/schemas.ts'
import type {
  AccountBody,
  AcquisitionBody,
  AttentionBody,
  BreakdownBody,
  ChurnReasonsBody,
  ExclusionsBody,
  ForecastBody,
  HistoryBody,
  MovementsBody,
  OverviewBody,
  RetentionBody,
  RevenueBody,
  RevenueFactsBody,
} from '../../src/http/reports/schemas.ts'
import type { Amount } from '../amount.ts'

/** The server's types, under the names that the console uses. Nothing of the server's code is served to browsers. */

export type { AlertValue, AlertView as Alert } from '../../src/admin/alerts.ts'
export type { AuditView as AuditRow } from '../../src/admin/audit.ts'
export type { DeadLetterView as DeadLetter, Replayed as ReplayResult } from '../../src/admin/dead-letters.ts'
export type {
  CreatedDestination,
  DeliveryView as Delivery,
  DestinationSettings,
  DestinationTest,
  DestinationView as Destination,
  NewDestinationSettings,
  RetriedMessages,
  SentMessage,
} from '../../src/admin/destinations.ts'
export type { DigestView as Digest } from '../../src/admin/digests.ts'
export type { ErasureReceipt } from '../../src/admin/erasure-run.ts'
export type { ErasurePreview, SuppressionList } from '../../src/admin/erasures.ts'
export type { PersonChoice } from '../../src/admin/error.ts'
export type {
  DestinationActivity,
  HealthView as Health,
  IssueView as Issue,
  SourceActivity,
} from '../../src/admin/health.ts'
export type { CreatedKey, KeyView as Key, RevokedKey, RotatedKey } from '../../src/admin/keys.ts'
export type { PersonView as Person } from '../../src/admin/people.ts'
export type { PolicyView as Policy } from '../../src/admin/policies.ts'
export type { ImportedRates } from '../../src/admin/rates.ts'
export type {
  BacklogView as Backlog,
  ReceiptView as Receipt,
  ReceivedRequest,
  RejectionView as Rejection,
} from '../../src/admin/receipts.ts'
export type { SourceTest } from '../../src/admin/source-test.ts'
export type {
  CreatedSource,
  CredentialView as Credential,
  RotatedSource,
  SourceView as Source,
} from '../../src/admin/sources.ts'
export type { TenantView as TenantSettings } from '../../src/admin/tenants.ts'
export type { InvitedUser, NewUser, SessionView as Session, UserView as User } from '../../src/admin/users.ts'
export type { DigestSchedule, Weekday } from '../../src/domain/alerts/digest.ts'
export type { Rule as RuleName } from '../../src/domain/alerts/rules.ts'
export type { What } from '../../src/domain/destinations/destinations.ts'
export type { ReceiptOutcome } from '../../src/domain/inbound/receipts.ts'
export type { JsonObject } from '../../src/domain/json/json.ts'
export type { KeyKind, Role } from '../../src/domain/tenants/keys.ts'
export type { ValidationError } from '../../src/domain/validation-error.ts'
export type { Found } from '../../src/reports/search.ts'

/**
 * An answer as the console parses it: a number that a double cannot hold arrives as an ExactNumber, and the instants
 * of reports arrive as ISO 8601.
 */
type Parsed<Schema extends TSchema> = Schema extends TInteger
  ? number
  : Schema extends TNumber
    ? Amount
    : Schema extends TUnsafe<number | Date>
      ? string
      : Schema extends TUnsafe<string | null>
        ? Amount | null
        : Schema extends TArray<infer Item>
          ? Parsed<Item>[]
          : Schema extends TRecord<string, infer Value>
            ? Record<string, Parsed<Value>>
            : Schema extends TUnion<infer Options>
              ? Parsed<Options[number]>
              : Schema extends TObject<infer Fields>
                ? ParsedFields<Fields>
                : Static<Schema>
type ParsedFields<Fields extends TProperties> = {
  [Name in keyof Fields as Fields[Name] extends TOptional ? never : Name]: Parsed<Fields[Name]>
} & {
  [Name in keyof Fields as Fields[Name] extends TOptional ? Name : never]?: Parsed<Fields[Name]>
}

/** A list that is read page by page: `next_cursor` is null on the last page. */
export type List<Row> = { results: Row[]; next_cursor: string | null }
/** One page of a report's list. */
export type Paged<Row> = { results: Row[]; page: number; page_size: number; count: number; pages: number }

export type Tenant = Pick<TenantView, 'id' | 'name'>
/** By rule, the value from which it raises an alert; null: the rule is off. */
export type AlertRules = Omit<AlertRulesView, 'tenant'>
export type NewKey = Static<typeof NewKeyBody>
export type SourceType = SourceView['type']
export type RateLimit = SourceView['rate_limit']
export type NewSource = Pick<SourceView, 'tenant' | 'type' | 'overflow'> &
  Partial<Pick<SourceView, 'name' | 'preset' | 'rate_limit'>> & { signing_secret?: string }
export type SecretKind = 'token' | 'signing_secret'
export type DeliveryOutcome = DeliveryView['outcome']
export type ArchivedEvent = { id: string; received_at: string; result: object }
export type DeadLetterWithBody = DeadLetterView & { body: string }
/** `tenant` null: of all tenants. */
export type ReplayOrder = Omit<ReplayQuery, 'tenant'> & { tenant: string | null }
export type PersonName = PersonView['names'][number]
/** How many rows of each kind an erasure removes. */
export type Erased = ErasurePreview['would_erase']
export type Suppression = SuppressionList['results'][number]

export type Event = Static<typeof EventBody>
export type EventOutcome = Static<typeof EventOutcomeBody>
export type EventStatus = EventOutcome['status']
export type Conversion = Parsed<typeof ConversionBody>
export type Customer = Parsed<typeof CustomerBody>
export type Channel = Parsed<typeof ChannelBody>
export type Funnel = Parsed<typeof FunnelBody>
export type { StoredRecord }
export type RecordType = `${StoredRecord['entityType']}s`
export type Series = Parsed<typeof EventSeriesBody | typeof ConversionSeriesBody>
export type Visitors = Parsed<typeof VisitorsBody>
export type SeriesRow = Series['results'][number] & { amounts?: Record<string, Amount> }

export type OverviewReport = Parsed<typeof OverviewBody>
export type HistoryReport = Parsed<typeof HistoryBody>
export type BooksReport = Parsed<typeof BooksView>
export type BreakdownReport = Parsed<typeof BreakdownBody>
export type MovementsReport = Parsed<typeof MovementsBody>
export type RetentionReport = Parsed<typeof RetentionBody>
export type AttentionReport = Parsed<typeof AttentionBody>
export type AcquisitionReport = Parsed<typeof AcquisitionBody>
export type AccountReport = Parsed<typeof AccountBody>

export type ForecastReport = Parsed<typeof ForecastBody>
export type ForecastMonth = ForecastReport['months'][number]
export type ForecastChange = ForecastReport['results'][number]
export type ChurnReasonsReport = Parsed<typeof ChurnReasonsBody>
export type ChurnReason = ChurnReasonsReport['totals'][number]
export type RevenueReport = Parsed<typeof RevenueBody>
export type RevenueMonth = RevenueReport['results'][number]
export type RevenueInvoices = Parsed<typeof RevenueFactsBody>
export type RevenueInvoice = RevenueInvoices['results'][number]
export type HistoryRow = HistoryReport['results'][number]
export type Restatement = BooksReport['results'][number]

export type ExclusionsReport = Parsed<typeof ExclusionsBody>
export type ExclusionReason = ExclusionsReport['by_reason'][number]

export type Account = OverviewReport['accounts']['results'][number]
export type Exclusion = OverviewReport['exclusions']['results'][number]
export type Movements = OverviewReport['movements']
export type RateName = keyof OverviewReport['rates']
export type BreakdownRow = BreakdownReport['results'][number]
export type Cohort = RetentionReport['cohorts']['results'][number]
export type MovementRow = MovementsReport['results'][number]
export type PaymentIssue = AttentionReport['payment_issues']['results'][number]
export type Renewal = AttentionReport['renewals']['results'][number]
export type Cancellation = AttentionReport['cancellations']['results'][number]
export type UpcomingBilling = AttentionReport['upcoming_billing']['results'][number]
export type AcquisitionSource = AcquisitionReport['sources']['results'][number]
export type Item = AccountReport['items']['results'][number]
export type TimelineEntry = AccountReport['timeline']['results'][number]
