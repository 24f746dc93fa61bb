import type { Static } from 'typebox'
import type * as reports from '../../console/api/report-types.ts'
import type * as data from '../../console/api/types.ts'
import type { ReceiptBody } from '../../src/http/admin/receipts.ts'
import type { CreatedKeyBody, KeyBody, TenantBody } from '../../src/http/admin/schemas.ts'
import type {
  ConversionBody,
  EventBody,
  EventOutcomeBody,
  StoredRecordBody,
} from '../../src/http/records/schemas.ts'
import type * as rows from '../../src/http/reports/rows.ts'

/**
 * Checked by `npm run types` alone: what the server's schemas promise is what the console's types expect. A line here
 * fails to compile when the two drift apart.
 */
type Holds<Expected, _Promised extends Expected> = true

export type Checks = [
  Holds<data.Tenant, Static<typeof TenantBody>>,
  Holds<data.Key, Static<typeof KeyBody>>,
  Holds<data.CreatedKey, Static<typeof CreatedKeyBody>>,
  Holds<data.Receipt, Static<typeof ReceiptBody>>,
  Holds<data.Event, Static<typeof EventBody>>,
  Holds<data.EventOutcome, Static<typeof EventOutcomeBody>>,
  Holds<data.Conversion, Static<typeof ConversionBody>>,
  Holds<Omit<data.StoredRecord, 'data'>, Static<typeof StoredRecordBody>>,
  Holds<reports.Account, Static<typeof rows.AccountRow>>,
  Holds<reports.Exclusion, Static<typeof rows.ExclusionRow>>,
  Holds<reports.PaymentIssue, Static<typeof rows.PaymentIssueRow>>,
  Holds<reports.Renewal, Static<typeof rows.RenewalRow>>,
  Holds<reports.Cancellation, Static<typeof rows.CancellationRow>>,
  Holds<reports.UpcomingBilling, Static<typeof rows.UpcomingBillingRow>>,
  Holds<reports.AcquisitionSource, Static<typeof rows.SourceRow>>,
  Holds<reports.Item, Static<typeof rows.ItemRow>>,
  Holds<reports.TimelineEntry, Static<typeof rows.TimelineRow>>,
]
