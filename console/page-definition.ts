import type { VNode } from 'preact'
import { h } from './html.ts'
import type { Route, RouteName } from './router.ts'

type LoadContext<Name extends RouteName> = { route: Route<Name>; signal: AbortSignal }

type ViewProps<Name extends RouteName, Data> = {
  data: Data
  route: Route<Name>
  /** Reads the page's data again; form input and open details stay. */
  refresh(): Promise<void>
}

/** A page whose data is loaded. */
type OpenedPage = (refresh: () => Promise<void>) => VNode

export type PageDefinition<Name extends RouteName> = {
  open(context: LoadContext<Name>): Promise<OpenedPage>
}

/**
 * Defines a page: `load` reads its data, then `View` renders it. The previous page stays meanwhile. An error of `load`
 * is shown in place of the page, so that no view has to handle loading and errors.
 */
export function definePage<Name extends RouteName, Data>(
  _name: Name,
  load: (context: LoadContext<Name>) => Promise<Data>,
  View: (props: ViewProps<Name, Data>) => VNode,
): PageDefinition<Name> {
  return {
    async open(context) {
      const data = await load(context)
      return refresh => h(View, { data, route: context.route, refresh })
    },
  }
}
