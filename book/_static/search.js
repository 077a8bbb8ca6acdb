// Search without a server: the pages' own text, loaded when somebody searches. A page that teaches a word comes first:
// its title counts most, then a heading, then the glossary, then the text. Without this file nothing is searched.
(() => {
  const SEPARATORS = /[-_.\s]+/;
  const LETTERS = /[a-z0-9]/;
  const CHINESE = /[⺀-鿿]/;
  const ENDINGS = new Set(["", "s", "es", "ed", "ing", "d", "e", "er", "ers"]);
  const SMALL = new Set("a an and are as at by do does for from how i in is it my not of on or the to what when which who why with your".split(" "));
  const BACK = "Back matter";
  const TITLE = 12, HEADING = 5, TERM = 2.5;

  // hangs, hanging, hanged: hang. The rest of the word is judged where it is found.
  const stem = (word) => {
    if (/^[a-z]{4,}ing$/.test(word)) return word.slice(0, -3);
    if (/^[a-z]{4,}ed$/.test(word)) return word.slice(0, -2);
    if (/^[a-z]{4,}es$/.test(word)) return word.slice(0, -2);
    if (/^[a-z]{3,}s$/.test(word) && !/(ss|us|is)$/.test(word)) return word.slice(0, -1);
    return word;
  };
  const ending = (rest) => ENDINGS.has(rest) || /^([b-z])(ing|ed)$/.test(rest) ? 1 : 0;

  // all_reduce, all-reduce, "all reduce" and allreduce are one word.
  const escape = (letter) => letter.replace(/[.*+?^${}()|[\]\\\/-]/g, "\\$&");
  const pattern = (word) => word.split(SEPARATORS).filter(Boolean)
    .map((part) => [...part].map(escape).join("[-_]?")).join("[-_. ]?");
  const compile = (word) => {
    const root = stem(word);
    const open = LETTERS.test(root[0]) ? "(^|[^a-z0-9])" : "()";
    const close = CHINESE.test(root) || !LETTERS.test(root[root.length - 1]) ? "()" : "([a-z0-9]*)";
    return { word, root, regex: new RegExp(open + "(" + pattern(root) + ")" + close, "g") };
  };
  const asked = (query) => query.toLowerCase().split(/\s+/)
    .map((word) => word.replace(/^[^\p{L}\p{N}_-]+|[^\p{L}\p{N}_]+$/gu, "")).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const wanted = (query) => {
    const words = [...new Set(asked(query))];
    const large = words.filter((word) => !SMALL.has(word));
    return (large.length ? large : words).map(compile);
  };

  // How good one found word is: the word itself, another form of it, or only its beginning.
  const quality = (term, rest) =>
    ending(rest) ? 1 : term.root.length < 3 ? 0 : (0.5 * term.root.length) / (term.root.length + rest.length);
  const count = (term, text) => {
    let sum = 0;
    term.regex.lastIndex = 0;
    for (let hit; (hit = term.regex.exec(text));) {
      sum += quality(term, hit[3] || "");
      if (!hit[0]) break;
    }
    return sum;
  };
  // The share of a title's words that were asked for.
  const share = (terms, title) => {
    const words = title.toLowerCase().split(/[^\p{L}\p{N}_.-]+/u).filter((word) => word && !SMALL.has(word));
    const best = terms.map((term) => Math.min(1, count(term, title.toLowerCase())));
    const parts = terms.reduce((sum, term, i) =>
      sum + (best[i] ? best[i] * Math.max(1, CHINESE.test(term.root) ? 1 : term.word.split(SEPARATORS).length) : 0), 0);
    const length = Math.max(1, words.reduce((sum, word) => sum + word.split(SEPARATORS).filter(Boolean).length, 0));
    return Math.min(1, parts / length);
  };

  // A page is also known by what stands before the colon of its title, and by the name of its file.
  const known = (terms, title, address) =>
    Math.max(...[title, title.split(":")[0], address.split("/").pop().replace(".html", "")].map((name) => share(terms, name)));

  let prepared;
  const prepare = ({ pages, sections }) => prepared ||= {
    pages: pages.map(([title, address, part], at) => ({ title, address, part, early: 1.15 - (0.15 * at) / pages.length })),
    sections: sections.map(([page, anchor, level, heading, prose, code]) =>
      ({ page, anchor, level, heading, prose, code, low: prose.toLowerCase(), lowCode: code.toLowerCase() })),
  };

  const score = (book, terms) => {
    const hits = book.sections.map((section) => terms.map((term) => {
      const text = count(term, section.low) + 0.4 * count(term, section.lowCode);
      const heading = count(term, section.heading.toLowerCase());
      return { text, heading };
    }));
    const rare = terms.map((_, i) => {
      const holding = hits.filter((hit) => hit[i].text || hit[i].heading).length;
      return holding ? Math.log(1 + book.sections.length / holding) : 0;
    });
    const missing = terms.map((_, i) => (rare[i] ? 0 : Math.log(1 + book.sections.length)));
    const whole = rare.reduce((sum, value) => sum + value, 0) + missing.reduce((sum, value) => sum + value, 0);
    const mean = whole / terms.length || 1;
    const found = [];
    book.sections.forEach((section, at) => {
      let covered = 0, text = 0;
      hits[at].forEach((hit, i) => {
        if (!hit.text && !hit.heading) return;
        covered += rare[i];
        text += (rare[i] / mean) * (hit.text / (hit.text + 2));
      });
      if (!covered) return;
      const back = book.pages[section.page].part === BACK;
      const of = share(terms, section.heading);
      const named = section.level === 1 && section.page ? TITLE * known(terms, section.heading, book.pages[section.page].address)
        : section.level === 0 ? TERM * of : HEADING * Math.sqrt(of);
      const value = (named * (back && section.level ? 0.4 : 1) + text) * (covered / whole) ** 3;
      found.push({ section, value, covered: covered / whole });
    });
    const most = Math.max(0, ...found.map((hit) => hit.covered));
    return found.filter((hit) => hit.covered > most - 0.35);
  };

  // Sections by page: a page stands where its best section stands, and a little higher where it says the word often.
  const grouped = (book, found) => {
    const groups = new Map();
    for (const hit of found) {
      const group = groups.get(hit.section.page) || { page: book.pages[hit.section.page], hits: [], sum: 0 };
      group.hits.push(hit);
      group.sum += hit.value;
      groups.set(hit.section.page, group);
    }
    for (const group of groups.values()) {
      group.hits.sort((a, b) => b.value - a.value);
      group.value = group.hits[0].value + Math.log(1 + group.sum) * (group.page.part === BACK ? 0.1 : 0.5);
      group.value *= group.page.early;
    }
    return [...groups.values()].sort((a, b) => b.value - a.value);
  };

  // A Chinese word is in the glossary alone: what it means is looked for, too.
  const translated = (book, terms) => {
    if (!terms.some((term) => CHINESE.test(term.root))) return [];
    return book.sections.filter((section) => section.level === 0 && terms.every((term) => count(term, section.low)))
      .map((section) => ({ section, terms: wanted(section.heading) }));
  };

  const find = (data, query) => {
    const book = prepare(data), terms = wanted(query);
    if (!terms.length) return { groups: [], terms };
    let found = score(book, terms);
    // A name in capitals is a variable: its own entry comes before all that say the word.
    const name = query.trim();
    if (/^[A-Z][A-Z0-9_]+$/.test(name)) {
      found = found.map((hit) => (hit.section.heading === name ? { ...hit, value: hit.value + 5 * TITLE } : hit));
    }
    const meanings = translated(book, terms);
    for (const meaning of meanings.slice(0, 3)) {
      found = found.map((hit) => (hit.section === meaning.section ? { ...hit, value: hit.value + 2 * TITLE } : hit));
      const have = new Set(found.map((hit) => hit.section));
      found = found.concat(score(book, meaning.terms).filter((hit) => !have.has(hit.section)));
    }
    return { groups: grouped(book, found), terms: [...terms, ...meanings.slice(0, 3).flatMap((one) => one.terms)] };
  };

  // ---- What a reader sees ------------------------------------------------------------------------------------------

  const element = (name, properties, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const marked = (text, terms) => {
    const low = text.toLowerCase(), spans = [];
    if (low.length === text.length) for (const term of terms) {
      term.regex.lastIndex = 0;
      for (let hit; (hit = term.regex.exec(low));) {
        const start = hit.index + hit[1].length;
        if (quality(term, hit[3] || "")) spans.push([start, start + hit[2].length + (hit[3] || "").length]);
        if (!hit[0]) break;
      }
    }
    spans.sort((a, b) => a[0] - b[0]);
    const parts = [];
    let at = 0;
    for (const [start, end] of spans) {
      if (start < at) continue;
      parts.push(text.slice(at, start), element("mark", { textContent: text.slice(start, end) }));
      at = end;
    }
    return [...parts, text.slice(at)];
  };
  // The line that says most of what was asked, cut to some 180 characters around the word.
  const excerpt = (section, terms) => {
    const best = (text) => text.split("\n").map((line) => {
      const low = line.toLowerCase();
      return [terms.reduce((sum, term) => sum + Math.min(1, count(term, low)), 0), line];
    }).reduce((one, other) => (other[0] > one[0] ? other : one), [0, ""]);
    const [said, prose] = best(section.prose), [ran, code] = best(section.code);
    const isCode = ran > said;
    const line = isCode ? code.trim() : said ? prose : section.prose.split("\n")[0] || "";
    const low = line.toLowerCase();
    const places = terms.map((term) => { term.regex.lastIndex = 0; const hit = term.regex.exec(low); return hit ? hit.index : Infinity; });
    const first = Math.min(...places);
    let start = first === Infinity || line.length < 200 ? 0 : Math.max(0, first - 70);
    if (start) start = line.indexOf(" ", start) + 1 || start;
    let end = Math.min(line.length, start + 190);
    if (end < line.length) end = line.lastIndexOf(" ", end) > start + 60 ? line.lastIndexOf(" ", end) : end;
    const cut = (start ? "… " : "") + line.slice(start, end) + (end < line.length ? " …" : "");
    return element(isCode ? "code" : "span", { className: "rl-hit-text" }, ...marked(cut, terms));
  };
  const top = () => document.documentElement.dataset.content_root || "./";
  const link = (page, section, terms) => {
    const isPage = section.level === 1;
    const name = isPage ? page.title : section.heading;
    const href = top() + page.address + (isPage || !section.anchor ? "" : "#" + section.anchor);
    const says = element("span", { className: "rl-hit-name" }, ...marked(name, terms));
    return element("a", { href, className: "rl-hit" }, says, excerpt(section, terms));
  };
  const list = (groups, terms, most) => element("ul", { className: "search" }, ...groups.slice(0, most).map(({ page, hits }) => {
    const where = [page.part, hits[0].section.level === 1 ? "" : page.title].filter(Boolean).join(" › ");
    return element("li", {}, element("p", { className: "rl-hit-where", textContent: where }),
      ...hits.filter((hit, i) => !i || hit.value > 0.3 * hits[0].value).slice(0, 3).map(({ section }) => link(page, section, terms)));
  }));

  let arriving;
  const load = () => arriving ||= new Promise((done, failed) => {
    const script = element("script", { src: top() + "_static/search-data.js" });
    script.onload = () => done(window.rankByRankSearch);
    script.onerror = failed;
    document.head.append(script);
  });

  // Results below a field, as it is typed in. The arrows go through them, Escape goes back to the field.
  const attach = (field, place, most) => {
    const told = element("p", { className: "rl-search-told" });
    told.setAttribute("role", "status");
    const results = element("div", { id: "search-results" });
    place.append(told, results);
    let turn = 0;
    const show = async () => {
      const query = field.value.trim(), mine = ++turn;
      if (!query) return void (told.textContent = "", results.replaceChildren());
      if (!window.rankByRankSearch) told.textContent = "Loading the text of the book …";
      let data;
      try { data = await load(); } catch { told.textContent = "The text of the book could not be loaded."; return; }
      if (mine !== turn) return;
      const { groups, terms } = find(data, query);
      told.textContent = !groups.length ? `Nothing in the book has “${query}”. Try fewer words, or another form of one.`
        : `${groups.length} ${groups.length === 1 ? "page" : "pages"}` + (groups.length > most ? `, the best ${most} are here` : "");
      results.replaceChildren(list(groups, terms, most));
    };
    field.addEventListener("input", show);
    field.addEventListener("focus", () => load().catch(() => {}), { once: true });
    const host = place.closest("dialog") || place;
    host.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const stops = [field, ...results.querySelectorAll("a")];
      const at = stops.indexOf(document.activeElement);
      if (!step || at < 0 || !stops[at + step]) return;
      event.preventDefault();
      stops[at + step].focus();
    });
    return show;
  };

  document.addEventListener("DOMContentLoaded", () => {
    const dialog = document.getElementById("pst-search-dialog");
    const inDialog = dialog && dialog.querySelector("input[type=search]");
    const place = document.getElementById("rl-search");
    if (place) {
      const field = place.querySelector("input");
      field.value = new URLSearchParams(location.search).get("q") || "";
      const show = attach(field, place, 20);
      if (field.value) show(); else field.focus();
      for (const button of document.querySelectorAll(".search-button__button")) button.addEventListener("click", () => field.focus());
    } else if (inDialog) attach(inDialog, dialog, 8);
  });

  window.rankByRankFind = find; // for the tests
})();
