/* <policy-step>: a softmax policy over three completions, and single steps of REINFORCE on it.

   The policy is softmax(z / temperature). A step on action a adds, to each logit z(c),
   step size * advantage * (1[c = a] - probability of c) / temperature.
   What the formulas are stands in formulas.js; this file shows them. */
(function () {
  "use strict";
  const { Explorer, formulas, html, svg, axis, definitions, table } = PolicyLab;

  const ACTIONS = [
    { name: "a", text: "640$", about: "right", logit: -1, reward: 1 },
    { name: "b", text: "650$", about: "a wrong digit", logit: 1, reward: 0.6 },
    { name: "c", text: "64$", about: "stops too early", logit: 0, reward: 0.2 },
  ];
  const SEED = 1;
  const SHOWN_STEPS = 12;
  const ROW = 64;
  const TOP = 30;
  const NARROW = 480;
  const ROUNDING = 1e-12;

  /** As PolicyLab.fixed, but a number that its digits would hide is written as 4.5e−5. */
  function fixed(number, digits) {
    const size = Math.abs(number);
    const hidden = size > ROUNDING && size < 0.5 * 10 ** -digits;
    return hidden
      ? number.toExponential(1).replaceAll("-", "\u2212")
      : PolicyLab.fixed(number, digits);
  }

  function signed(number, digits) {
    const text = fixed(number, digits);
    return number > 0 && /[1-9]/.test(text) ? `+${text}` : text;
  }

  /**
   * @typedef {{action: ?number, sampled: boolean, reward: number, baseline: number,
   *   advantage: number, left: ?number[], gradient: number[], change: number[],
   *   before: Policy, after: Policy}} Step  action is null for the average step
   * @typedef {{logits: number[], probs: number[], entropy: number, expected: number}} Policy
   */

  class PolicyStep extends Explorer {
    controls() {
      const sliders = (kind, range) =>
        ACTIONS.map(({ name, text, [kind]: start }) => ({
          key: kind + name,
          label: `${name} (${text})`,
          start,
          ...range,
        }));
      const upTo4 = { max: 4, step: 0.1, start: 1, digits: 1 };
      return [
        {
          legend: "Logits z",
          items: sliders("logit", { min: -5, max: 5, step: 0.1, digits: 2 }),
        },
        {
          legend: "Rewards R",
          items: sliders("reward", { min: -1, max: 2, step: 0.1, digits: 1 }),
        },
        {
          legend: "Policy and step",
          items: [
            { key: "tau", label: "temperature τ", min: 0.2, ...upTo4 },
            { key: "alpha", label: "step size α", min: 0.1, ...upTo4 },
          ],
        },
        {
          legend: "Baseline b",
          items: [
            {
              key: "baseline",
              label: "baseline",
              options: [
                ["zero", "0"],
                ["expected", "expected reward E[R]"],
              ],
              start: "zero",
            },
            { key: "seed", label: "seed of the samples", whole: true, start: SEED, max: 9999 },
          ],
        },
      ];
    }

    buttons() {
      return [
        { label: "Sample an action and step", run: () => this.sample() },
        ...ACTIONS.map(({ name }, a) => ({ label: `Step on ${name}`, run: () => this.take(a) })),
        { label: "Average step", run: () => this.average() },
      ];
    }

    start() {
      this.step = null;
      this.taken = [];
      this.draws = 0;
    }

    /** A moved control ends the comparison with the last step; a new seed starts a new sequence. */
    changed(key) {
      this.step = null;
      if (key === "seed") this.draws = 0;
    }

    get rewards() {
      return ACTIONS.map(({ name }) => this.values["reward" + name]);
    }

    /** The policy as it stands, @returns {Policy} */
    policy() {
      const logits = ACTIONS.map(({ name }) => this.values["logit" + name]);
      const probs = formulas.softmax(logits, this.values.tau);
      return {
        logits,
        probs,
        entropy: formulas.entropy(probs),
        expected: formulas.expectedValue(probs, this.rewards),
      };
    }

    sample() {
      const draw = formulas.uniform(this.values.seed, this.draws++);
      this.take(formulas.pick(this.policy().probs, draw), true);
    }

    take(action, sampled = false) {
      const before = this.policy();
      const reward = this.rewards[action];
      const baseline = this.values.baseline === "zero" ? 0 : before.expected;
      const advantage = reward - baseline;
      const { tau } = this.values;
      this.move({
        action,
        sampled,
        reward,
        baseline,
        advantage,
        left: formulas.surprise(before.probs, action),
        gradient: formulas.policyGradient(before.logits, action, advantage, tau),
        before,
      });
    }

    average() {
      const before = this.policy();
      const gradient = formulas.expectedGradient(before.logits, this.rewards, this.values.tau);
      this.move({ action: null, left: null, gradient, before });
    }

    /** Add the gradient to the logits, and remember the step. */
    move(step) {
      const logits = formulas.ascend(step.before.logits, step.gradient, this.values.alpha);
      ACTIONS.forEach(({ name }, c) => this.show("logit" + name, logits[c]));
      const change = step.gradient.map((entry) => this.values.alpha * entry);
      this.step = { ...step, change, after: this.policy() };
      this.taken.push(step.action === null ? "average" : ACTIONS[step.action].name);
      this.refresh();
    }

    view(width) {
      const now = this.policy();
      return {
        height: TOP + ROW * ACTIONS.length + 26,
        marks: drawing(width, now, this.step),
        label: inWords(now, this.step),
        status: this.news(now),
        readouts: [numbers(now, this.step), entries(this.step), this.history(), explanation()],
      };
    }

    /** One or two sentences on what has just happened. */
    news(now) {
      const { step } = this;
      if (!step) {
        const probs = now.probs.map((prob, c) => `${ACTIONS[c].name} ${fixed(prob, 3)}`);
        return `Probabilities: ${probs.join(", ")}. Take a step to see what it changes.`;
      }
      const count = `Step ${this.taken.length}:`;
      if (step.action === null) {
        const change = `${fixed(step.before.expected, 3)} to ${fixed(step.after.expected, 3)}`;
        const moves = step.change.map((by, c) => `${ACTIONS[c].name} by ${signed(by, 2)}`);
        return (
          `${count} the average step. The expected reward went from ${change}. ` +
          `Logits moved: ${moves.join(", ")}.`
        );
      }
      const { name } = ACTIONS[step.action];
      const [from, to] = [step.before.probs[step.action], step.after.probs[step.action]];
      const effect = to > from ? "likelier" : to < from ? "less likely" : "unchanged";
      return (
        `${count} ${name} was ${step.sampled ? "sampled" : "taken"}. ` +
        `Reward ${fixed(step.reward, 2)} minus baseline ${fixed(step.baseline, 2)} ` +
        `is an advantage of ${signed(step.advantage, 2)}. ` +
        `The logit of ${name} moved by ${signed(step.change[step.action], 2)}, ` +
        `and its probability went from ${fixed(from, 3)} to ${fixed(to, 3)}: ${effect}.`
      );
    }

    /** The actions of the last steps. */
    history() {
      const { length } = this.taken;
      const last = this.taken.slice(-SHOWN_STEPS).join(", ");
      const cut = length > SHOWN_STEPS ? "…, " : "";
      const text = length ? `Steps since the start (${length}): ${cut}${last}.` : "No step yet.";
      return html("p", { class: "xp-note" }, text);
    }
  }

  /** The drawing in words, for those who cannot see it. */
  function inWords(now, step) {
    const probs = ACTIONS.map(({ name, about }, c) => {
      const from = step ? `${fixed(step.before.probs[c], 3)} before, ` : "";
      const push = step ? `, change of logit ${signed(step.change[c], 2)}` : "";
      return `${name} (${about}): ${from}${fixed(now.probs[c], 3)}${step ? " now" : ""}${push}`;
    });
    return `Bars of the probability of each action. ${probs.join("; ")}.`;
  }

  /** Two panels side by side: probabilities before and after, and the change of each logit. */
  function drawing(width, now, step) {
    const split = Math.round(width * 0.64);
    const bars = { left: 8, right: split - 14 };
    const push = { left: split + 14, right: width - 8 };
    const limit = step ? Math.max(1, Math.ceil(Math.max(...step.change.map(Math.abs)))) : 1;
    const bottom = TOP + ROW * ACTIONS.length;
    const narrow = width < NARROW;
    const title = narrow ? "change Δz" : "change Δz of the logit";
    return [
      svg("text", { class: "xp-head", x: bars.left, y: 16 }, "probability π"),
      svg("text", { class: "xp-head", x: push.left, y: 16 }, title),
      ...axis({ ...bars, top: TOP - 4, bottom }, [0, 0.5, 1], String),
      ...axis({ ...push, top: TOP - 4, bottom }, [-limit, 0, limit], signed0),
      ...ACTIONS.flatMap((action, c) => [
        ...probabilityRow(bars, TOP + ROW * c, c, now, step, narrow),
        ...(step ? pushRow(push, TOP + ROW * c, step.change[c], limit) : []),
      ]),
      ...(step ? [] : [svg("text", { class: "xp-tick", x: push.left, y: TOP + 50 }, "no step yet")]),
    ];
  }

  const signed0 = (value) => signed(value, 0);

  /** Name, numbers and bar of one action; a narrow row says "taken" in place of the text. */
  function probabilityRow({ left, right }, top, c, now, step, narrow) {
    const { name, text } = ACTIONS[c];
    const length = (prob) => Math.max(1, prob * (right - left));
    const taken = step && step.action === c;
    const from = step ? `${fixed(step.before.probs[c], 3)} → ` : "";
    const words = taken && narrow ? name : `${name}: ${text}`;
    const label = svg("text", { x: left, y: top + 18 }, words);
    if (taken) label.append(svg("tspan", { class: "xp-taken" }, " taken"));
    const value = { class: "xp-value", x: right, y: top + 18, "text-anchor": "end" };
    const bar = { class: "xp-bar", x: left, y: top + 29, height: 18 };
    const marks = [
      label,
      svg("text", value, from + fixed(now.probs[c], 3)),
      svg("rect", { ...bar, width: length(now.probs[c]) }),
    ];
    if (step) {
      const ghost = { class: "xp-before", x: left, y: top + 25, height: 26 };
      marks.push(svg("rect", { ...ghost, width: length(step.before.probs[c]) }));
    }
    return marks;
  }

  function pushRow({ left, right }, top, change, limit) {
    const middle = (left + right) / 2;
    const length = (Math.abs(change) / limit) * (right - middle);
    const x = change < 0 ? middle - length : middle;
    const bar = { class: change < 0 ? "xp-bar xp-down" : "xp-bar", x, y: top + 29, height: 18 };
    const value = { class: "xp-value", x: middle, y: top + 18, "text-anchor": "middle" };
    return [
      svg("rect", { ...bar, width: Math.max(1, length) }),
      svg("text", value, signed(change, 2)),
    ];
  }

  /** Named numbers; those of a step are dashes as long as there is none. */
  function numbers(now, step) {
    const pair = (key, digits) => {
      const from = step ? `${fixed(step.before[key], digits)} → ` : "";
      return from + fixed(now[key], digits);
    };
    const single = step && step.action !== null;
    const rows = [
      ["Expected reward E[R] = Σ π R", pair("expected", 3)],
      ["Entropy of the policy", `${pair("entropy", 3)} nats`],
      [
        "Advantage A = R − b of the step",
        single
          ? `${fixed(step.reward, 2)} − ${fixed(step.baseline, 2)} = ${signed(step.advantage, 2)}`
          : "–",
      ],
    ];
    return definitions(rows);
  }

  /** Per action: what the step's gradient is made of, and what it did. */
  function entries(step) {
    const heads = ["action", "1[taken] − π", "gradient", "Δz", "Δπ"];
    const rows = ACTIONS.map(({ name }, c) => {
      if (!step) return [name, "–", "–", "–", "–"];
      const change = step.after.probs[c] - step.before.probs[c];
      const values = [step.gradient[c], step.change[c], change];
      const left = step.left ? signed(step.left[c], 3) : "–";
      return [name, left, ...values.map((value) => signed(value, 3))];
    });
    return table("The last step, action by action", heads, rows);
  }

  function explanation() {
    return html(
      "p",
      { class: "xp-note" },
      "π is the probability of a completion: exp(z/τ), divided by the sum of exp(z/τ) over all " +
        "three. A step adds Δz = α × gradient to each logit, and π changes by Δπ. The gradient is " +
        "A (1[taken] − π) / τ, where 1[taken] is 1 for the completion that was taken and 0 for the " +
        "others; the factor 1/τ comes from z/τ, by the chain rule. The average step weighs the " +
        "gradients of the three by their π, which gives π (R − E[R]) / τ: the baseline drops out. " +
        "Numbers that the digits would hide are written as 4.5e−5, which is 0.000045.",
    );
  }

  customElements.define("policy-step", PolicyStep);
})();
