import { Page, Section, Tabs } from '../../components/page.ts'
import { h } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { Arrivals } from './arrivals.ts'
import { SENDERS, senderOf } from './senders.ts'
import { ConnectWithKey } from './with-key.ts'
import { ConnectWithSource } from './with-source.ts'

/** From nothing to the first event. */
export const page = definePage(
  'connect',
  async () => null,
  ({ route }) => {
    const sender = senderOf(route.params.sender)
    return h(
      Page,
      {
        title: 'Connect',
        lead: 'Choose a sender. The steps below use the address of this server and your key.',
      },
      h(Tabs, { label: 'Senders', tabs: TABS, current: sender.name }),
      sender.by === 'key'
        ? h(ConnectWithKey, { sender: sender.name })
        : h(ConnectWithSource, { sender: sender.name, title: sender.title }),
      h(Section, { title: 'Incoming events' }, h(Arrivals, {})),
    )
  },
)

const TABS = SENDERS.map(({ name, title }) => ({ name, title, href: link('connect', { sender: name }) }))
