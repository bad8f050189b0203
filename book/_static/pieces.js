/* The pieces that interactive figures are made of: elements, numbers as text, axes, tables. */
(function () {
  "use strict";

  /** Make an HTML element; attributes whose value is undefined are left out. */
  function html(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  /* The parser knows the address that names SVG, so that it need not be written here. */
  const parsed = html("div", {});
  parsed.innerHTML = "<svg></svg>";
  const SVG = parsed.firstChild.namespaceURI;

  /** Make an SVG element, with text if given. */
  function svg(tag, attributes, text) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  /** A number with a real minus sign, and never "-0.00". */
  function fixed(number, digits) {
    const text = number.toFixed(digits);
    return /^-[0.]*$/.test(text) ? text.slice(1) : text.replace("-", "\u2212");
  }

  /** As `fixed`, with a sign also where the number is positive. */
  function signed(number, digits) {
    const text = fixed(number, digits);
    return /^[0.]*$/.test(text) || text.startsWith("\u2212") ? text : "+" + text;
  }

  /**
   * Grid lines across a panel, each with its number below.
   * @param {{left: number, right: number, top: number, bottom: number}} panel in CSS pixels
   * @param {number[]} ticks ascending; the first stands at the left edge, the last at the right
   * @param {function(number): string} format
   * @returns {SVGElement[]}
   */
  function axis({ left, right, top, bottom }, ticks, format) {
    const [low, high] = [ticks[0], ticks[ticks.length - 1]];
    return ticks.flatMap((tick) => {
      const x = left + ((tick - low) / (high - low)) * (right - left);
      const anchor = tick === low ? "start" : tick === high ? "end" : "middle";
      return [
        svg("line", { class: "xp-grid", x1: x, x2: x, y1: top, y2: bottom }),
        svg("text", { class: "xp-tick", x, y: bottom + 16, "text-anchor": anchor }, format(tick)),
      ];
    });
  }

  /** A list of named values. @param {[string, string][]} rows */
  function definitions(rows) {
    const cells = rows.map(([name, value]) =>
      html("div", {}, html("dt", {}, name), html("dd", {}, value)),
    );
    return html("dl", { class: "xp-numbers" }, ...cells);
  }

  /** A table; the first cell of each row is its name. @param {string[][]} rows */
  function table(caption, heads, rows) {
    const head = html("tr", {}, ...heads.map((text) => html("th", { scope: "col" }, text)));
    const body = rows.map(([name, ...values]) => {
      const cells = values.map((value) => html("td", {}, value));
      return html("tr", {}, html("th", { scope: "row" }, name), ...cells);
    });
    return html(
      "table",
      { class: "xp-table" },
      html("caption", {}, caption),
      html("thead", {}, head),
      html("tbody", {}, ...body),
    );
  }

  Object.assign(PolicyLab, { html, svg, fixed, signed, axis, definitions, table });
})();
