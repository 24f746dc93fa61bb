import type { Static } from 'typebox'
import type * as sent from '../../console/api/destination-types.ts'
import type * as reports from '../../console/api/report-types.ts'
import type * as data from '../../console/api/types.ts'
import type * as views from '../../src/admin/views.ts'
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
  Holds<data.TenantSettings, views.TenantView>,
  Holds<data.Health, views.HealthView>,
  Holds<data.Alert, views.AlertView>,
  Holds<data.AlertRules, views.AlertRulesView>,
  Holds<data.SuppressionList, views.SuppressionList>,
  Holds<data.Issue, views.IssueView>,
  Holds<data.Person, views.PersonView>,
  Holds<data.ErasurePreview, views.ErasurePreview>,
  Holds<data.ErasureReceipt, views.ErasureReceipt>,
  Holds<data.Key, views.KeyView>,
  Holds<data.CreatedKey, views.CreatedKey>,
  Holds<data.RotatedKey, views.RotatedKey>,
  Holds<data.RevokedKey, views.RevokedKey>,
  Holds<data.Source, views.SourceView>,
  Holds<data.CreatedSource, views.CreatedSource>,
  Holds<data.RotatedSource, views.RotatedSource>,
  Holds<data.SourceActivity, views.SourceActivity>,
  Holds<data.DestinationActivity, views.DestinationActivity>,
  Holds<data.ReceivedRequest, views.ReceivedRequest>,
  Holds<data.Receipt, views.ReceiptView>,
  Holds<data.Rejection, views.RejectionView>,
  Holds<data.Backlog, views.BacklogView>,
  Holds<data.DeadLetter, views.DeadLetterView>,
  Holds<data.AuditRow, views.AuditView>,
  Holds<sent.Destination, views.DestinationView>,
  Holds<sent.CreatedDestination, views.CreatedDestination>,
  Holds<sent.DestinationTest, views.DestinationTest>,
  Holds<sent.Delivery, views.DeliveryView>,
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
