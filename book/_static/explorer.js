/* The base of all interactive figures: sliders, choices, buttons, a drawing, a spoken status.

   A figure is a custom element whose class extends PolicyLab.Explorer and has

     controls()     {ControlGroup[]} what the reader can set; read once
     buttons()      {Button[]} what the reader can do; read once; "Reset" is added to them
     start()        sets the figure's own state, at first and at each reset
     changed(key)   is told which control the reader moved
     view(width)    {View} what to show now; pure

   Nothing is stored or sent, and nothing moves by itself. */
(function () {
  "use strict";
  const { html, svg, fixed } = PolicyLab;

  /**
   * @typedef {{key: string, label: string, unit?: string, min: number, max: number, step: number,
   *   start: number, digits: number}} Slider  its value is a number, shown with `digits` decimals
   * @typedef {{key: string, label: string, options: [string, string][], start: string}} Choice
   *   radio buttons; options are [value, label]
   * @typedef {{key: string, label: string, whole: true, start: number, max: number}} Whole
   *   a field for a whole number, 0 to max
   * @typedef {{legend: string, items: (Slider|Choice|Whole)[]}} ControlGroup
   * @typedef {{label: string, run: function(): void}} Button
   * @typedef {{height: number, marks: SVGElement[], label: string, status: string,
   *   readouts: Node[]}} View  marks are in CSS pixels; label is the drawing in words
   */

  let made = 0;

  class Explorer extends HTMLElement {
    connectedCallback() {
      if (this.plot) return;
      this.idPrefix = `${this.localName}-${++made}`;
      this.values = {};
      this.inputs = {};
      this.setters = [];
      this.plot = svg("svg", { class: "xp-plot", role: "img" });
      this.status = html("p", { class: "xp-status", "aria-live": "polite" });
      this.readouts = html("div", { class: "xp-readouts" });
      this.settings = html("p", { class: "xp-settings" });
      const groups = this.controls().map((group) => this.makeGroup(group));
      const actions = [...this.buttons(), { label: "Reset", run: () => this.reset() }];
      this.replaceChildren(
        this.plot,
        this.status,
        html("div", { class: "xp-buttons" }, ...actions.map((action) => this.makeButton(action))),
        html("div", { class: "xp-controls" }, ...groups),
        this.readouts,
        this.settings,
      );
      this.reset();
      new ResizeObserver(() => this.draw()).observe(this.plot);
    }

    /** Put every control and the figure's own state back to the start. */
    reset() {
      for (const set of this.setters) set();
      this.start();
      this.refresh();
    }

    /** Show the state: drawing, status, readouts, and the settings that print shows. */
    refresh() {
      const view = this.draw();
      this.status.textContent = view.status;
      this.readouts.replaceChildren(...view.readouts);
      this.settings.textContent = `${this.describe()}.`;
    }

    /** Draw at the present width, one unit a CSS pixel, so that text keeps its size on a phone. */
    draw() {
      const width = Math.max(240, Math.round(this.plot.getBoundingClientRect().width));
      const view = this.view(width);
      this.plot.setAttribute("viewBox", `0 0 ${width} ${view.height}`);
      this.plot.setAttribute("aria-label", view.label);
      this.plot.replaceChildren(...view.marks);
      return view;
    }

    /** Show a value in a control without telling `changed`; a slider stops at its ends. */
    show(key, value) {
      this.inputs[key](value);
    }

    makeButton({ label, run }) {
      const button = html("button", { type: "button", class: "xp-button" }, label);
      button.addEventListener("click", run);
      return button;
    }

    makeGroup({ legend, items }) {
      const rows = items.map((item) => {
        if (item.options) return this.makeChoice(item);
        return item.whole ? this.makeWhole(item) : this.makeSlider(item);
      });
      return html("fieldset", { class: "xp-group" }, html("legend", {}, legend), ...rows);
    }

    makeSlider({ key, label, unit, min, max, step, start, digits }) {
      const id = `${this.idPrefix}-${key}`;
      const input = html("input", { type: "range", id, min, max, step });
      const output = html("output", { for: id, "aria-live": "off" });
      const show = (value) => {
        this.values[key] = value;
        input.value = value;
        output.textContent = fixed(value, digits) + (unit ? `\u00a0${unit}` : "");
        input.setAttribute("aria-valuetext", output.textContent);
      };
      this.listen(input, "input", key, show, Number);
      this.inputs[key] = show;
      this.setters.push(() => show(start));
      return html("div", { class: "xp-slider" }, html("label", { for: id }, label), input, output);
    }

    makeWhole({ key, label, start, max }) {
      const id = `${this.idPrefix}-${key}`;
      const input = html("input", { type: "number", id, min: 0, max, step: 1 });
      const show = (value) => {
        this.values[key] = Math.min(max, Math.max(0, Math.round(value) || 0));
        input.value = this.values[key];
      };
      this.listen(input, "change", key, show, Number);
      this.inputs[key] = show;
      this.setters.push(() => show(start));
      return html("div", { class: "xp-whole" }, html("label", { for: id }, label), input);
    }

    makeChoice({ key, label, options, start }) {
      const radios = {};
      const show = (value) => {
        this.values[key] = value;
        radios[value].checked = true;
      };
      const rows = options.map(([value, text]) => {
        const radio = html("input", { type: "radio", name: `${this.idPrefix}-${key}`, value });
        radios[value] = radio;
        this.listen(radio, "change", key, show, String);
        return html("label", {}, radio, html("span", {}, text));
      });
      this.inputs[key] = show;
      this.setters.push(() => show(start));
      const name = { class: "xp-choice", role: "radiogroup", "aria-label": label };
      return html("div", name, ...rows);
    }

    listen(input, event, key, show, read) {
      input.addEventListener(event, () => {
        show(read(input.value));
        this.changed(key);
        this.refresh();
      });
    }

    /** Every setting in words, group by group. */
    describe() {
      const groups = this.controls().map(({ legend, items }) => {
        const words = items.map((item) => {
          const value = this.values[item.key];
          if (item.options) return `${item.label} ${new Map(item.options).get(value)}`;
          return `${item.label} ${item.whole ? value : fixed(value, item.digits)}`;
        });
        return `${legend}: ${words.join(", ")}`;
      });
      return groups.join(". ");
    }
  }

  PolicyLab.Explorer = Explorer;
})();
