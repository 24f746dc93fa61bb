import { MergeBody, MergedAccount } from '../../admin/accounts.ts'
import { BooksQuery, BooksView, ClosedMonth } from '../../admin/books.ts'
import { PolicyView } from '../../admin/policies.ts'
import { ImportedRates } from '../../admin/rates.ts'
import { TenantView } from '../../admin/tenants.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { NewTenantBody, PolicyBody, TenantChangeBody, whole } from './schemas.ts'

export function tenantRoutes(app: App, parts: { admin: RequestAdmin }): void {
  const { route, list } = adminRoutes(app, parts, 'Admin: tenants')
  list('/admin/v1/tenants', {
    summary: 'List tenants',
    description: 'All tenants, or the one that the key is restricted to.',
    item: TenantView,
    run: admin => admin.tenants.list(),
  })
  route('POST', '/admin/v1/tenants', {
    summary: 'Create a tenant',
    description:
      'The data, keys and sources of tenants are isolated from each other. A new tenant has no keys: see `POST /admin/v1/keys`. 409 if the name is taken.',
    problems: [409],
    body: NewTenantBody,
    returns: TenantView,
    status: 201,
    hasLocation: true,
    run: (admin, { body }) => admin.tenants.create(body),
  })
  route('GET', '/admin/v1/tenants/:id', {
    summary: 'Get a tenant',
    description: 'By id or name, with its settings: conversion types, maximum age of events, handling of IP addresses.',
    returns: TenantView,
    run: (admin, { params }) => admin.tenants.show(params.id),
  })
  route('PATCH', '/admin/v1/tenants/:id', {
    summary: 'Update a tenant',
    description:
      'Conversion types, maximum age of events, handling of IP addresses. Fields that are absent stay unchanged. Changes apply to new data on every server within two seconds, not to existing data.',
    body: TenantChangeBody,
    returns: TenantView,
    run: (admin, { params, body }) => admin.tenants.update(params.id, body),
  })
  route('GET', '/admin/v1/tenants/:id/policy', {
    summary: 'Get the MRR policy of a tenant',
    description:
      'How pauses, trials and unpaid invoices affect MRR, the time zone, the base of retention, and whether reports use the policy yet (`applied`).',
    returns: PolicyView,
    run: (admin, { params }) => admin.policies.show(params.id),
  })
  const { page, page_size, month } = BooksQuery
  route('GET', '/admin/v1/tenants/:id/books', {
    summary: 'List closed months and their restatements',
    description: 'Returns the same as `GET /v1/subscriptions/books`.',
    query: Type.Object({ month: Type.Optional(month), page, page_size }),
    returns: BooksView,
    run: (admin, { params, query }) =>
      admin.books.status(params.id, { month: query.month, page: query.page, pageSize: query.page_size }),
  })
  route('POST', '/admin/v1/tenants/:id/books/close', {
    summary: 'Close a month',
    description:
      'Reports with `basis=as_closed` then return the figures of the month as they are now. 409 if the month has not ended in the time zone of the policy, or a policy is not applied yet. Closing a closed month changes nothing.',
    problems: [409],
    body: Type.Object({ month }, whole),
    returns: ClosedMonth,
    run: (admin, { params, body }) => admin.books.close(params.id, body.month),
  })
  route('POST', '/admin/v1/tenants/:id/books/reopen', {
    summary: 'Reopen a closed month',
    description:
      'Deletes the figures that were kept when the month was closed, and its restatements. 404 if the month is not closed.',
    body: Type.Object({ month }, whole),
    returns: ClosedMonth,
    run: (admin, { params, body }) => admin.books.reopen(params.id, body.month),
  })
  list('/admin/v1/tenants/:id/accounts/merged', {
    summary: 'List merged billing accounts',
    description: 'The latest merge first.',
    item: MergedAccount,
    run: (admin, { params }) => admin.accounts.list(params.id),
  })
  route('POST', '/admin/v1/tenants/:id/accounts/merge', {
    summary: 'Merge two billing accounts',
    description:
      'For one customer with two accounts. Reports then show the subscriptions and invoices of `account` as those of `into`, in the past and in the future. 404 if an account is unknown. 409 if one of them is merged already, or is test data. Merging again changes nothing.',
    problems: [409],
    body: Type.Object(MergeBody, whole),
    returns: MergedAccount,
    run: (admin, { params, body }) => admin.accounts.merge(params.id, body),
  })
  route('POST', '/admin/v1/tenants/:id/accounts/unmerge', {
    summary: 'Undo a merge of billing accounts',
    description:
      'Reports then show both accounts again, also for events that arrived while they were merged. 404 if the account is not merged.',
    problems: [409],
    body: Type.Object({ account: MergeBody.account }, whole),
    returns: MergedAccount,
    run: (admin, { params, body }) => admin.accounts.unmerge(params.id, body.account),
  })
  route('POST', '/admin/v1/tenants/:id/rates', {
    summary: 'Import exchange rates',
    description:
      'Daily rates in the CSV format of the European Central Bank, for reports that convert currencies. Existing rates are replaced. Split a file that is larger than the limit of a request; each part needs the first line.',
    body: Type.Object(
      { csv: Type.String({ description: 'One line per day, one column per currency: units for one euro' }) },
      { ...whole, examples: [{ csv: 'Date,USD\n2026-03-30,1.08\n2026-03-31,1.09' }] },
    ),
    returns: ImportedRates,
    run: (admin, { params, body }) => admin.rates.import(params.id, body.csv),
  })
  route('PUT', '/admin/v1/tenants/:id/policy', {
    summary: 'Update the MRR policy of a tenant',
    description:
      'Fields that are absent stay unchanged. If a change requires Kontor to recompute the ledger, reports use the previous policy until that is complete (`applied` is then true). Other changes apply immediately.',
    body: PolicyBody,
    returns: PolicyView,
    run: (admin, { params, body }) => admin.policies.set(params.id, body),
  })
}
