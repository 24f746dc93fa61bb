import type { Static } from 'typebox'
import type * as sent from '../../console/api/destination-types.ts'
import type * as reports from '../../console/api/report-types.ts'
import type * as data from '../../console/api/types.ts'
import type { AlertRulesView, AlertView } from '../../src/admin/views/alerts.ts'
import type { AuditView } from '../../src/admin/views/audit.ts'
import type { DeadLetterView } from '../../src/admin/views/dead-letters.ts'
import type {
  CreatedDestination,
  DeliveryView,
  DestinationTest,
  DestinationView,
} from '../../src/admin/views/destinations.ts'
import type { ErasurePreview, ErasureReceipt, SuppressionList } from '../../src/admin/views/erasures.ts'
import type {
  DestinationActivity,
  HealthView,
  IssueView,
  SourceActivity,
} from '../../src/admin/views/health.ts'
import type {
  BacklogView,
  ReceiptView,
  ReceivedRequest,
  RejectionView,
} from '../../src/admin/views/inbound.ts'
import type { CreatedKey, KeyView, RevokedKey, RotatedKey } from '../../src/admin/views/keys.ts'
import type { PersonView } from '../../src/admin/views/people.ts'
import type { CreatedSource, RotatedSource, SourceView } from '../../src/admin/views/sources.ts'
import type { TenantView } from '../../src/admin/views/tenants.ts'
import type { EventBody, EventOutcomeBody } from '../../src/http/events/schemas.ts'
import type { StoredRecordBody } from '../../src/http/records/schemas.ts'
import type * as rows from '../../src/http/reports/rows.ts'

/**
 * Checked by `npm run types` alone: what the server's schemas promise is what the console's types expect. A line here
 * fails to compile when the two drift apart.
 */
type Holds<Expected, _Promised extends Expected> = true

/** Rows of reports hold instants and amounts in forms of their own: here their fields count, and which may be null. */
type Fields<Row> = { [Name in keyof Row]: null extends Row[Name] ? 'nullable' | 'given' : 'given' }

export type Checks = [
  Holds<data.TenantSettings, TenantView>,
  Holds<data.Health, HealthView>,
  Holds<data.Alert, AlertView>,
  Holds<data.AlertRules, AlertRulesView>,
  Holds<data.SuppressionList, SuppressionList>,
  Holds<data.Issue, IssueView>,
  Holds<data.Person, PersonView>,
  Holds<data.ErasurePreview, ErasurePreview>,
  Holds<data.ErasureReceipt, ErasureReceipt>,
  Holds<data.Key, KeyView>,
  Holds<data.CreatedKey, CreatedKey>,
  Holds<data.RotatedKey, RotatedKey>,
  Holds<data.RevokedKey, RevokedKey>,
  Holds<data.Source, SourceView>,
  Holds<data.CreatedSource, CreatedSource>,
  Holds<data.RotatedSource, RotatedSource>,
  Holds<data.SourceActivity, SourceActivity>,
  Holds<data.DestinationActivity, DestinationActivity>,
  Holds<data.ReceivedRequest, ReceivedRequest>,
  Holds<data.Receipt, ReceiptView>,
  Holds<data.Rejection, RejectionView>,
  Holds<data.Backlog, BacklogView>,
  Holds<data.DeadLetter, DeadLetterView>,
  Holds<data.AuditRow, AuditView>,
  Holds<sent.Destination, DestinationView>,
  Holds<sent.CreatedDestination, CreatedDestination>,
  Holds<sent.DestinationTest, DestinationTest>,
  Holds<sent.Delivery, DeliveryView>,
  Holds<data.Event, Static<typeof EventBody>>,
  Holds<data.EventOutcome, Static<typeof EventOutcomeBody>>,
  Holds<Omit<data.StoredRecord, 'data'>, Static<typeof StoredRecordBody>>,
  Holds<Fields<reports.HistoryRow>, Fields<Static<typeof rows.HistoryRow>>>,
  Holds<Fields<reports.MovementRow>, Fields<Static<typeof rows.MovementListRow>>>,
  Holds<Fields<reports.Cohort>, Fields<Static<typeof rows.CohortRow>>>,
  Holds<Fields<reports.Account>, Fields<Static<typeof rows.AccountRow>>>,
  Holds<Fields<reports.Exclusion>, Fields<Static<typeof rows.ExclusionRow>>>,
  Holds<Fields<reports.PaymentIssue>, Fields<Static<typeof rows.PaymentIssueRow>>>,
  Holds<Fields<reports.Renewal>, Fields<Static<typeof rows.RenewalRow>>>,
  Holds<Fields<reports.Cancellation>, Fields<Static<typeof rows.CancellationRow>>>,
  Holds<Fields<reports.UpcomingBilling>, Fields<Static<typeof rows.UpcomingBillingRow>>>,
  Holds<Fields<reports.AcquisitionSource>, Fields<Static<typeof rows.SourceRow>>>,
  Holds<Fields<reports.Item>, Fields<Static<typeof rows.ItemRow>>>,
  Holds<Fields<reports.TimelineEntry>, Fields<Static<typeof rows.TimelineRow>>>,
]
