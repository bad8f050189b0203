/* <choice-quiz>: makes radio buttons of the questions that the page holds as text.

   The page gives, for each question, a container .quiz-question of: the question (a paragraph,
   maybe more), a list .quiz-choices, and <details class="quiz-explanations"> with a list of one
   explanation a choice, the right one's item of class quiz-right. Nodes are moved, never copied, so
   that formulas stay as they are. Nothing is stored or sent. */
(function () {
  "use strict";
  const { html } = PolicyLab;

  const HELP =
    "Choose an answer to see why it is right or wrong; you can choose again. " +
    "With the keyboard, arrow keys move and Space or Enter chooses.";
  let made = 0;

  /** One question: its radio buttons, its explanations, and whether the first try was right. */
  class Question {
    /**
     * @param {HTMLElement} container of class quiz-question
     * @param {string} name what its radio buttons share
     * @param {function(): void} answered called after each answer
     */
    constructor(container, name, answered) {
      this.answered = answered;
      const details = container.querySelector(".quiz-explanations");
      const choices = container.querySelector(".quiz-choices");
      this.explanations = [...details.querySelectorAll(":scope > ol > li")];
      this.rows = [...choices.children].map((item, i) => this.makeRow(item, name, "ABCDEFGH"[i]));
      this.inputs = this.rows.map((row) => row.querySelector("input"));
      const legend = html("legend", {}, ...container.firstElementChild.childNodes);
      container.firstElementChild.remove();
      const more = [...container.children].filter((node) => node !== choices && node !== details);
      const list = details.querySelector("ol");
      list.classList.add("quiz-feedback");
      list.setAttribute("aria-live", "polite");
      const rows = html("div", { class: "quiz-rows" }, ...this.rows);
      this.fieldset = html("fieldset", {}, legend, ...more, rows);
      container.replaceChildren(this.fieldset, list);
      this.listen();
      this.clear();
    }

    /** The letter is text, and no list marker, so that a choice of one formula has words, too. */
    makeRow(item, name, letter) {
      const block = item.querySelector(":scope > p") || item;
      const text = html("span", {}, `${letter}. `, ...block.childNodes);
      return html("label", {}, html("input", { type: "radio", name }), text);
    }

    /** Arrow keys move the selection, which is not yet an answer; a click, Space or Enter is. */
    listen() {
      let moving = false;
      this.fieldset.addEventListener("keydown", (event) => {
        moving = event.key.startsWith("Arrow");
        const index = this.inputs.indexOf(event.target);
        if (index >= 0 && (event.key === " " || event.key === "Enter")) {
          event.preventDefault();
          this.answer(index);
        }
      });
      this.fieldset.addEventListener("keyup", () => {
        moving = false;
      });
      this.inputs.forEach((input, index) => {
        input.addEventListener("click", () => {
          if (!moving) this.answer(index);
        });
      });
    }

    isRight(index) {
      return this.explanations[index].classList.contains("quiz-right");
    }

    answer(index) {
      this.inputs[index].checked = true;
      if (this.firstTry === null) this.firstTry = this.isRight(index);
      this.show(index);
      this.answered();
    }

    /** Show one explanation, or none (-1). */
    show(index) {
      this.explanations.forEach((node, i) => node.classList.toggle("quiz-shown", i === index));
      this.rows.forEach((row, i) => {
        row.classList.toggle("quiz-chosen-right", i === index && this.isRight(i));
        row.classList.toggle("quiz-chosen-wrong", i === index && !this.isRight(i));
      });
    }

    clear() {
      this.firstTry = null;
      for (const input of this.inputs) input.checked = false;
      this.show(-1);
    }
  }

  class ChoiceQuiz extends HTMLElement {
    connectedCallback() {
      if (this.questions) return;
      const prefix = `quiz-${++made}`;
      const containers = [...this.querySelectorAll(".quiz-question")];
      this.questions = containers.map(
        (node, i) => new Question(node, `${prefix}-${i}`, () => this.count()),
      );
      this.counter = html("p", { class: "quiz-count", role: "status" });
      const again = html("button", { type: "button", class: "xp-button" }, "Start again");
      again.addEventListener("click", () => {
        for (const question of this.questions) question.clear();
        this.count();
      });
      this.prepend(html("p", { class: "quiz-help" }, HELP));
      this.append(html("div", { class: "quiz-foot" }, this.counter, again));
      this.count();
    }

    count() {
      const tries = this.questions.map((question) => question.firstTry);
      const right = tries.filter((firstTry) => firstTry).length;
      const open = tries.filter((firstTry) => firstTry === null).length;
      const rest = open ? `; ${open} not answered yet.` : ".";
      const score = `${right} of ${tries.length} answered right at the first try`;
      this.counter.textContent = score + rest;
    }
  }

  customElements.define("choice-quiz", ChoiceQuiz);
})();
