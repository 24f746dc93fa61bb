import type { VNode } from 'preact'
import { type PersonChoice, Problem } from '../../api/request.ts'
import { Page } from '../../components/page.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { PersonForm } from './people.ts'

/** Of a name that several people go by. */
type Choices = { choices: PersonChoice[] }

/** The answer, or the people that it asks to choose from. */
export async function orChoices<Answer>(answer: Promise<Answer>): Promise<Answer | Choices> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'person_ambiguous') throw error
    return { choices: error.choices }
  }
}

export function ChoicePage({ id, choices }: Choices & { id: string }): VNode {
  return h(
    Page,
    {
      title: 'More than one person',
      lead: html`These go by ${id}, and nothing has told yet that they are one.`,
    },
    html`<ul>
      ${choices.map(
        ({ name, profile_id: profile }) =>
          html`<li><a href=${link('person', { id: profile })}>${name}</a> <span class="faint">${profile}</span></li>`,
      )}
    </ul>`,
    h(PersonForm, { name: id }),
  )
}
