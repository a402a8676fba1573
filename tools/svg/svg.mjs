// @ts-check
/** Writes SVG that needs no style sheet and no script. Numbers have one decimal. */

/** @typedef {Readonly<Record<string, string | number>>} Attributes */

/** @param {string} text */
function escaped(text) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replaceAll(/[&<>"]/g, (sign) => entities[/** @type {"&"} */ (sign)]);
}

/** @param {Attributes} attributes */
function written(attributes) {
  return Object.entries(attributes)
    .map(([name, value]) => {
      const text = typeof value === "number" ? Math.round(value * 10) / 10 : escaped(value);
      return ` ${name}="${text}"`;
    })
    .join("");
}

/**
 * @param {string} name
 * @param {Attributes} attributes
 * @param {string} [content] SVG
 */
export function element(name, attributes, content) {
  const open = `<${name}${written(attributes)}`;
  return content === undefined ? `${open}/>` : `${open}>${content}</${name}>`;
}

/** @param {string} content plain text @param {Attributes} attributes */
export function text(content, attributes) {
  return element("text", attributes, escaped(content));
}

/**
 * @param {Attributes} attributes of a rectangle
 * @param {string} [title] shown while the pointer is on it
 */
export function rect(attributes, title) {
  const content = title === undefined ? undefined : element("title", {}, escaped(title));
  return element("rect", attributes, content);
}

/**
 * Returns a picture on white ground.
 *
 * @param {number} width
 * @param {number} height
 * @param {readonly string[]} shapes
 * @param {Attributes} [attributes] that all shapes inherit
 */
export function picture(width, height, shapes, attributes = {}) {
  const size = { viewBox: `0 0 ${width} ${Math.ceil(height)}`, width, height: Math.ceil(height) };
  const all = { xmlns: "http://www.w3.org/2000/svg", ...size, ...attributes };
  const ground = rect({ width: "100%", height: "100%", fill: "#ffffff" });
  return `${element("svg", all, `\n${[ground, ...shapes].join("\n")}\n`)}\n`;
}
