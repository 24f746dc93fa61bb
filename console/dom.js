/** Elements are made here and nowhere else. Text goes in as text: nothing that was received becomes markup. */

const SVG = 'http://www.w3.org/2000/svg'
const PROPERTIES = new Set([
  'value',
  'checked',
  'selected',
  'disabled',
  'hidden',
  'open',
  'required',
  'multiple',
])

/** h('a', { class: 'x', href: '#/', onclick: f }, 'text', element, [more]); null and false children are left out. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children)
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children)
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else if (PROPERTIES.has(name)) element[name] = value
    else element.setAttribute(name, value === true ? '' : value)
  }
  // A choice in a list can be made only once the list is there.
  element.append(
    ...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false),
  )
  if (element.localName === 'select' && attributes.value !== undefined) element.value = attributes.value
  return element
}

/** Tells those who listen what has changed on the page. */
export function say(text) {
  document.getElementById('said').textContent = text
}
