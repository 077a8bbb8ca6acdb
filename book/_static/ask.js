// Predictions that ask: where a page offers answers, (A) (B) (C), what its cells printed waits until the reader has
// chosen one. Then the outputs and the reason are shown. Nothing is counted. What was chosen is kept on this device
// alone, and only where the browser keeps anything for this page. Without this file, and on paper, the page is whole.
(() => {
  const QUESTION = "p > strong";
  // How the prose begins that tells the answer. What begins otherwise is shown, and no answer is marked.
  const TOLD = /^(?:(?:With|By|On|In) [^.:]{1,60}? )?(?:the answers?|it) (?:is|are|should be) ([A-D])\b(?:,? and ([A-D])\b)?/i;
  const ABOUT_ANSWER = /^.{0,40}\b(?:answer|[A-D] should be right)\b/i;
  const KEY = `rank-by-rank.ask:${location.pathname}`;

  const make = (name, className, text) => Object.assign(document.createElement(name), { className, textContent: text });
  const words = (element) => element.textContent.replace(/\s+/g, " ").trim();

  // A browser may keep nothing for a file, or refuse: then the page forgets.
  const load = () => {
    try { return JSON.parse(localStorage.getItem(KEY)) || {}; } catch { return {}; }
  };
  const keep = (memory) => {
    try { localStorage.setItem(KEY, JSON.stringify(memory)); } catch { /* forgotten, then */ }
  };
  const memory = { all: false, said: {}, ...load() };

  // A question's name in the memory follows from its words: it survives a page to which others are added.
  const named = (text) => {
    let sum = 5381;
    for (const character of text) sum = (sum * 33 + character.codePointAt(0)) >>> 0;
    return sum.toString(36);
  };

  const asks = (element) => element.matches("p") && [...element.querySelectorAll(":scope > strong")].some(
    (strong) => /\?$/.test(words(strong)) && /^\s*\(A\) /.test(strong.nextSibling?.nodeValue || ""));

  // Turn "(A) one (B) four" behind the question into buttons that have the same words.
  const offered = (paragraph) => {
    const strong = [...paragraph.querySelectorAll(":scope > strong")].findLast((each) => /\?$/.test(words(each)));
    const list = make("span", "rl-answers", "");
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", words(strong));
    let button = null;
    for (let node = strong.nextSibling; node; node = strong.nextSibling) {
      node.remove();
      if (node.nodeType !== Node.TEXT_NODE) { button?.append(node); continue; }
      for (const part of node.nodeValue.split(/(?=\([A-D]\) )/)) {
        if (/^\([A-D]\) /.test(part)) {
          button = Object.assign(make("button", "rl-answer", ""), { type: "button" });
          button.dataset.letter = part[1];
          button.setAttribute("aria-pressed", "false");
          list.append(button, " ");
        }
        button?.append(part);
      }
    }
    strong.after(" ", list);
    return { text: words(strong), list, buttons: [...list.querySelectorAll("button")], said: null, right: null };
  };

  // What waits for a question: the outputs up to the text that tells the answer, and that text up to the next cell.
  const following = (paragraph) => {
    const outputs = [], reason = [];
    let told = null, printed = false;
    for (let next = paragraph.nextElementSibling; next; next = next.nextElementSibling) {
      if (next.matches("section, .exercise, .solution, .footnote-list") || asks(next)) break;
      if (next.matches("div.cell")) {
        if (reason.length) break;
        const found = next.querySelectorAll(":scope > .cell_output");
        outputs.push(...found);
        printed ||= found.length > 0;
      } else if (reason.length) reason.push(next);
      else if ((told = words(next).match(TOLD)) || (printed && ABOUT_ANSWER.test(words(next)))) reason.push(next);
    }
    if (!reason.length) outputs.splice(0, outputs.length, ...directly(paragraph));
    return { outputs, reason, letters: told ? told.slice(1).filter(Boolean).map((each) => each.toUpperCase()) : [] };
  };

  // Where no text tells the answer, the cells directly below the question are all that it is about.
  const directly = (paragraph) => {
    const found = [];
    let cells = false;
    for (let next = paragraph.nextElementSibling; next; next = next.nextElementSibling) {
      if (next.matches("div.cell")) found.push(...next.querySelectorAll(":scope > .cell_output"));
      else if (cells || !next.matches("p")) break;
      cells ||= next.matches("div.cell");
    }
    return found;
  };

  const hold = (elements) => {
    const box = make("div", "rl-held", "");
    elements[0].before(box);
    box.append(...elements);
    return box;
  };

  const begin = () => {
    const article = document.querySelector("article");
    if (!article) return;
    const paragraphs = [...new Set([...article.querySelectorAll(QUESTION)].map((each) => each.parentElement))];
    const groups = [];
    let waiting = [];
    for (const paragraph of paragraphs.filter((each) => asks(each) && !each.closest(".admonition"))) {
      waiting.push(paragraph);
      const next = paragraph.nextElementSibling;
      if (next && asks(next)) continue; // two questions before one output: both are answered first
      const { outputs, reason, letters } = following(paragraph);
      if (outputs.length || reason.length) groups.push(group(waiting, outputs, reason, letters));
      waiting = [];
    }
    if (groups.length) panel(article, groups);
  };

  const group = (paragraphs, outputs, reason, letters) => {
    const questions = paragraphs.map(offered);
    if (letters.length === questions.length) questions.forEach((question, i) => { question.right = letters[i]; });
    const held = outputs.map((output) => hold([output]));
    if (reason.length) held.push(hold(reason));
    const wait = make("p", "rl-waits", outputs.length ? "What it prints waits for your answer. " : "The reason waits for your answer. ");
    const skip = Object.assign(make("button", "rl-skip", "Show it"), { type: "button" });
    wait.append(skip);
    held[0].before(wait);
    const told = make("span", "rl-told", "");
    told.setAttribute("role", "status");
    paragraphs.at(-1).append(told);
    const self = { questions, held, wait, told, key: named(questions.map(({ text }) => text).join(" ")) };
    self.letters = () => questions.map(({ said }) => said || "?").join("");
    // A minus sign before the letters: the output was asked for before the last answer.
    self.skipped = () => (memory.said[self.key] || "").startsWith("-");
    self.shown = () => memory.all || self.skipped() || questions.every(({ said }) => said);
    const stored = (memory.said[self.key] || "").replace("-", "");
    questions.forEach((question, i) => {
      question.said = /[A-D]/.test(stored[i] || "") ? stored[i] : null;
      for (const button of question.buttons) button.addEventListener("click", () => choose(self, question, button.dataset.letter));
      question.list.addEventListener("keydown", (event) => {
        const letter = event.key.toUpperCase();
        if (event.ctrlKey || event.metaKey || event.altKey || !question.buttons.some((each) => each.dataset.letter === letter)) return;
        event.preventDefault();
        choose(self, question, letter);
      });
    });
    const unasked = () => {
      memory.said[self.key] = `-${self.letters()}`;
      keep(memory);
      draw(self);
    };
    skip.addEventListener("click", () => {
      unasked();
      questions[0].buttons[0].focus({ preventScroll: true }); // what had the focus is gone
    });
    // The browser's own search, or a link, has found something that waits.
    for (const box of held) box.addEventListener("beforematch", unasked);
    draw(self);
    return self;
  };

  const choose = (self, question, letter) => {
    if (question.said) return; // a prediction is not changed when the output is known
    question.said = letter;
    memory.said[self.key] = (self.skipped() ? "-" : "") + self.letters();
    keep(memory);
    draw(self);
  };

  const sentence = (self) => {
    const said = self.questions.map(({ said }) => said);
    if (!said.some(Boolean)) return self.skipped() ? "Shown without an answer." : "";
    if (!said.every(Boolean)) return self.skipped() ? "One more question." : "One more question, then the output is shown.";
    const chosen = `You chose ${said.join(" and ")}`;
    const right = self.questions.map(({ right }) => right);
    if (!right.every(Boolean)) return `${chosen}. What follows is shown below.`;
    if (right.join() === said.join()) return `${chosen}, and so does the page. The reason is below.`;
    return `${chosen}. The page says ${right.join(" and ")}, and the reason is below.`;
  };

  const draw = (self) => {
    const shown = self.shown();
    for (const box of self.held) {
      if (shown) box.removeAttribute("hidden");
      else box.setAttribute("hidden", "until-found");
    }
    self.wait.hidden = shown;
    for (const { buttons, said, right } of self.questions)
      for (const button of buttons) {
        const { letter } = button.dataset;
        button.setAttribute("aria-pressed", String(said === letter));
        if (said) button.setAttribute("aria-disabled", "true");
        else button.removeAttribute("aria-disabled");
        button.classList.toggle("rl-right", shown && Boolean(said) && right === letter);
      }
    self.told.textContent = sentence(self);
  };

  // One line above the first section: how many questions there are, and the switch that shows all outputs.
  const panel = (article, groups) => {
    const count = groups.reduce((sum, { questions }) => sum + questions.length, 0);
    const line = make("p", "rl-asking", `${count} ${count === 1 ? "question" : "questions"} on this page: `
      + "what a cell prints is shown when you have chosen an answer. ");
    const label = make("label", "", "");
    const all = Object.assign(make("input", "", ""), { type: "checkbox", checked: memory.all });
    label.append(all, " Show all outputs");
    const again = Object.assign(make("button", "rl-skip", "Forget my answers"), { type: "button" });
    line.append(label, " ", again);
    const drawn = () => { keep(memory); groups.forEach(draw); };
    all.addEventListener("change", () => { memory.all = all.checked; drawn(); });
    again.addEventListener("click", () => {
      Object.assign(memory, { all: false, said: {} });
      all.checked = false;
      for (const { questions } of groups) for (const question of questions) question.said = null;
      drawn();
    });
    const first = article.querySelector("section > section");
    if (first) first.before(line);
    else article.prepend(line);
  };

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
