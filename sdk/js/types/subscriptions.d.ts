import type { Api } from './records.ts';
import type { Books, BooksQuery, Report, ReportQuery } from './types.ts';
export type Subscriptions = ReturnType<typeof openSubscriptions>;
export declare function openSubscriptions(api: Api): {
    /** MRR, movements and related metrics. */
    overview: (query: ReportQuery<"overview">) => Promise<{
        accounts: {
            count: number;
            page: number;
            page_size: number;
            pages: number;
            results: import("./openapi.ts").components["schemas"]["Account"][];
        };
        acquisition_sources: {
            count: number;
            page: number;
            page_size: number;
            pages: number;
            results: import("./openapi.ts").components["schemas"]["AcquisitionSource"][];
        };
        active_accounts: number;
        active_subscriptions: number;
        arpa: number;
        arr: number;
        as_of: string;
        attention: {
            cancellations: number;
            payment_issues: number;
            renewals: number;
            upcoming_billing: number;
        };
        collected: {
            amount: number;
            count: number;
            disputed: number;
            one_off: number;
            refunded: number;
        };
        committed_mrr: number;
        coverage: import("./openapi.ts").components["schemas"]["Coverage"];
        currency: string;
        exclusions: {
            count: number;
            page: number;
            page_size: number;
            pages: number;
            results: import("./openapi.ts").components["schemas"]["Exclusion"][];
        };
        invoiced: import("./openapi.ts").components["schemas"]["AmountAndCount"];
        movements: {
            churn: number;
            closing_mrr: number;
            contraction: number;
            expansion: number;
            fx?: number;
            net: number;
            new: number;
            opening_mrr: number;
            reactivation: number;
            window_days: number;
        };
        mrr: number;
        older_rates?: string[];
        policy: import("./openapi.ts").components["schemas"]["ReportPolicy"];
        rates: import("./openapi.ts").components["schemas"]["Rates"];
    }>;
    /** Payment issues, renewals, scheduled cancellations, upcoming billing. */
    attention: (query: ReportQuery<"attention">) => Promise<{
        as_of: string;
        cancellations: {
            count: number;
            page: number;
            page_size: number;
            pages: number;
            results: import("./openapi.ts").components["schemas"]["Cancellation"][];
        };
        currency: string;
        days: number;
        payment_issues: {
            count: number;
            page: number;
            page_size: number;
            pages: number;
            results: import("./openapi.ts").components["schemas"]["PaymentIssue"][];
        };
        policy: import("./openapi.ts").components["schemas"]["ReportPolicy"];
        renewals: {
            count: number;
            page: number;
            page_size: number;
            pages: number;
            results: import("./openapi.ts").components["schemas"]["Renewal"][];
        };
        upcoming_billing: {
            count: number;
            page: number;
            page_size: number;
            pages: number;
            results: import("./openapi.ts").components["schemas"]["UpcomingBilling"][];
        };
    }>;
    /** Current MRR by acquisition source, and retention. */
    acquisition: (query: ReportQuery<"acquisition">) => Promise<{
        as_of: string;
        coverage: import("./openapi.ts").components["schemas"]["Coverage"];
        currency: string;
        horizon: number;
        mrr: number;
        policy: import("./openapi.ts").components["schemas"]["ReportPolicy"];
        sources: {
            count: number;
            page: number;
            page_size: number;
            pages: number;
            results: import("./openapi.ts").components["schemas"]["AcquisitionSource"][];
        };
    }>;
    /** One account, by `customer` or `subscription_id`: summary, items, timeline. null if there is none. */
    account: (query: ReportQuery<"account">) => Promise<Report<"account"> | null>;
    /** Monthly cohorts. */
    retention: (query: ReportQuery<"retention">) => Promise<{
        as_of: string;
        cohorts: {
            count: number;
            page: number;
            page_size: number;
            pages: number;
            results: import("./openapi.ts").components["schemas"]["Cohort"][];
        };
        currency: string;
        months: number;
        policy: import("./openapi.ts").components["schemas"]["ReportPolicy"];
        retention_base: "first_instant" | "end_of_month";
    }>;
    /** MRR and its movements by day, week or month. */
    history: (query: ReportQuery<"history">) => Promise<{
        as_of: string;
        currency: string;
        interval: string;
        policy: import("./openapi.ts").components["schemas"]["ReportPolicy"];
        policy_changes: import("./openapi.ts").components["schemas"]["PolicyChange"][];
        results: import("./openapi.ts").components["schemas"]["HistoryBucket"][];
    }>;
    /** MRR by plan, interval, source or country. */
    breakdown: (query: ReportQuery<"breakdown">) => Promise<{
        as_of: string;
        by: "plan" | "plan_group" | "interval" | "source" | "channel" | "country" | "metadata";
        currency: string;
        mrr: number;
        policy: import("./openapi.ts").components["schemas"]["ReportPolicy"];
        results: import("./openapi.ts").components["schemas"]["BreakdownRow"][];
    }>;
    /** Invoiced and paid amounts by day, week or month. */
    cash: (query: ReportQuery<"cash">) => Promise<{
        as_of: string;
        currency: string;
        interval: string;
        policy: import("./openapi.ts").components["schemas"]["ReportPolicy"];
        results: import("./openapi.ts").components["schemas"]["CashBucket"][];
    }>;
    /** MRR of all currencies converted to one, with the exchange rates of the tenant. */
    consolidated: (query: ReportQuery<"consolidated">) => Promise<{
        active_subscriptions: number;
        arr: number;
        as_of: string;
        currency: string;
        missing_rates: string[];
        movements: {
            churn: number;
            closing_mrr: number;
            contraction: number;
            expansion: number;
            fx: number;
            new: number;
            opening_mrr: number;
            reactivation: number;
            window_days: number;
        };
        mrr: number;
        older_rates: string[];
        policy: import("./openapi.ts").components["schemas"]["ReportPolicy"];
        results: import("./openapi.ts").components["schemas"]["CurrencyMrr"][];
    }>;
    /** Invoiced, recognized and deferred revenue by month. */
    revenue: (query: ReportQuery<"revenue">) => Promise<{
        as_of: string;
        currency: string;
        policy: import("./openapi.ts").components["schemas"]["ReportPolicy"];
        results: import("./openapi.ts").components["schemas"]["RevenueMonth"][];
        warnings: string[];
    }>;
    /** Scheduled changes, and the resulting MRR by month. */
    forecast: (query: ReportQuery<"forecast">) => Promise<{
        as_of: string;
        count: number;
        currency: string;
        months: import("./openapi.ts").components["schemas"]["ForecastMonth"][];
        opening_mrr: number;
        page: number;
        page_size: number;
        pages: number;
        policy: import("./openapi.ts").components["schemas"]["ReportPolicy"];
        results: import("./openapi.ts").components["schemas"]["ForecastChange"][];
    }>;
    /** Churned accounts and MRR by month and reason. */
    churnReasons: (query: ReportQuery<"churn-reasons">) => Promise<{
        as_of: string;
        currency: string;
        policy: import("./openapi.ts").components["schemas"]["ReportPolicy"];
        results: import("./openapi.ts").components["schemas"]["ChurnReason"][];
        totals: import("./openapi.ts").components["schemas"]["ChurnReasonTotal"][];
    }>;
    /** Closed months, and what changed in them since. */
    books: (query?: BooksQuery) => Promise<Books>;
    accounts: (query: ReportQuery<"overview">) => AsyncGenerator<{
        acquisition_source: string;
        active_subscriptions: number;
        arr: number;
        committed_mrr: number;
        customer: string;
        customer_email: string | null;
        customer_name: string | null;
        customer_since: string | null;
        has_payment_issue: boolean;
        mrr: number;
        next_billing_at: string | null;
        plan_names: string[];
        status: string;
        subscriptions: number;
    }, void, undefined>;
    exclusions: (query: ReportQuery<"overview">) => AsyncGenerator<{
        customer: string | null;
        customer_name: string | null;
        excluded_mrr: number | null;
        fix_hint: string;
        item_id: string | null;
        reason: string;
        reason_code: string;
        since: string;
        status: string | null;
        subscription_id: string;
    }, void, undefined>;
    paymentIssues: (query: ReportQuery<"attention">) => AsyncGenerator<{
        amount_due: number | null;
        amount_remaining: number | null;
        attempt_count: number | null;
        customer: string | null;
        customer_name: string | null;
        days_overdue: number | null;
        due_at: string | null;
        failure_code: string | null;
        failure_message: string | null;
        invoice_id: string | null;
        invoice_number: string | null;
        issue_type: "payment_failed" | "action_required" | "overdue" | "uncollectible" | "subscription_unpaid";
        mrr_at_risk: number;
        next_payment_attempt_at: string | null;
        subscription_id: string | null;
    }, void, undefined>;
    renewals: (query: ReportQuery<"attention">) => AsyncGenerator<{
        customer: string;
        customer_name: string | null;
        days_until: number;
        has_payment_issue: boolean;
        interval: string;
        interval_count: number;
        mrr: number;
        renewal_amount: number | null;
        renews_at: string;
        subscription_id: string;
    }, void, undefined>;
    cancellations: (query: ReportQuery<"attention">) => AsyncGenerator<{
        cancels_at: string;
        customer: string;
        customer_name: string | null;
        days_until: number;
        mrr_at_risk: number;
        reason: string | null;
        requested_at: string | null;
        subscription_id: string;
    }, void, undefined>;
    upcomingBilling: (query: ReportQuery<"attention">) => AsyncGenerator<{
        bills_at: string;
        collection_method: string | null;
        customer: string;
        customer_name: string | null;
        days_until: number;
        estimated_amount: number | null;
        includes_metered: boolean;
        is_trial_conversion: boolean;
        subscription_id: string;
    }, void, undefined>;
    sources: (query: ReportQuery<"acquisition">) => AsyncGenerator<{
        accounts: number;
        arpa: number;
        campaign: string | null;
        cohort_accounts: number | null;
        cohort_starting_mrr: number | null;
        medium: string | null;
        mrr: number;
        mrr_share: number;
        retained_mrr: number | null;
        retention_rate: number | null;
        retention_status: "available" | "insufficient_history" | "horizon_not_reached";
        source: string;
        subscriptions: number;
    }, void, undefined>;
    items: (query: ReportQuery<"account">) => AsyncGenerator<{
        currency: string | null;
        current_period_end: string | null;
        current_period_start: string | null;
        discount_mrr: number;
        exclusion_reason: string | null;
        gross_mrr: number;
        included: boolean;
        interval: string | null;
        interval_count: number | null;
        item_id: string | null;
        mrr: number;
        plan_name: string | null;
        price_id: string | null;
        quantity: number | null;
        subscription_id: string;
        unit_amount: number | null;
        usage_type: string | null;
    }, void, undefined>;
    timeline: (query: ReportQuery<"account">) => AsyncGenerator<{
        amount: number | null;
        category: "subscription" | "invoice" | "payment" | "refund" | "movement";
        cause: ("new_subscription" | "additional_subscription" | "quantity" | "price" | "plan" | "discount" | "discount_end" | "item_added" | "item_removed" | "pause" | "resume" | "trial_end" | "cancellation_voluntary" | "cancellation_failed_payment" | "other") | null;
        description: string;
        event_id: string | null;
        event_type: string;
        invoice_id: string | null;
        movement_type: string | null;
        mrr_after: number | null;
        mrr_before: number | null;
        mrr_delta: number | null;
        occurred_at: string;
        subscription_id: string | null;
    }, void, undefined>;
    movements: (query: ReportQuery<"movements">) => AsyncGenerator<{
        cause: "new_subscription" | "additional_subscription" | "quantity" | "price" | "plan" | "discount" | "discount_end" | "item_added" | "item_removed" | "pause" | "resume" | "trial_end" | "cancellation_voluntary" | "cancellation_failed_payment" | "other";
        customer: string;
        customer_name: string | null;
        event_id: string | null;
        movement_type: "new" | "expansion" | "contraction" | "churn" | "reactivation";
        mrr_after: number;
        mrr_before: number;
        mrr_delta: number;
        occurred_at: string;
        subscription_ids: string[];
    }, void, undefined>;
    trials: (query: ReportQuery<"trials">) => AsyncGenerator<{
        customer: string;
        ended_at: string | null;
        mrr: number;
        outcome: "converted" | "expired" | "running";
        plan_names: string[];
        started_at: string;
        subscription_id: string;
        trial_end: string | null;
    }, void, undefined>;
    failedInvoices: (query: ReportQuery<"dunning">) => AsyncGenerator<{
        amount: number;
        customer: string | null;
        failed_at: string;
        failure_code: string | null;
        failure_message: string | null;
        invoice_id: string;
        invoice_number: string | null;
        outcome: "recovered" | "lost" | "open";
        resolved_at: string | null;
        subscription_id: string | null;
    }, void, undefined>;
    cashFacts: (query: ReportQuery<"cash/facts">) => AsyncGenerator<{
        amount: number;
        collected: number;
        customer: string | null;
        disputed: number;
        id: string;
        invoice_id: string | null;
        invoiced: number;
        kind: "invoice" | "payment" | "refund" | "dispute";
        occurred_at: string;
        one_off: number;
        outstanding: number;
        refunded: number;
        subscription_id: string | null;
    }, void, undefined>;
    revenueInvoices: (query: ReportQuery<"revenue/invoices">) => AsyncGenerator<{
        amount: number;
        credit_note_id: string | null;
        customer: string | null;
        customer_name: string | null;
        deferred: number;
        invoice_id: string;
        invoice_number: string | null;
        invoiced: number;
        invoiced_on: string;
        recognized: number;
        service_end: string;
        service_start: string;
        subscription_id: string | null;
    }, void, undefined>;
};
