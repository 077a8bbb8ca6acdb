// One slide at a time. Arrows, space, click: go. n: notes, s: notes in a window, o: all slides, f: whole screen.
(() => {
  const body = document.body, slides = [...document.querySelectorAll(".slide")];
  const notes = [...document.querySelectorAll(".notes")];
  let now = 0, other = null;
  // A slide that is longer than its frame is made smaller, rather than cut off.
  const fit = body => {
    body.style.transform = "";
    const wide = Math.max(body.scrollWidth / body.clientWidth, body.scrollHeight / body.clientHeight);
    if (wide > 1) body.style.transform = `scale(${1 / wide})`;
  };
  const size = () => {
    const scale = Math.min(innerWidth / 1280, innerHeight / 720);
    slides.forEach(s => s.style.transform = `scale(${scale}) translate(-50%, -50%)`);
  };
  const speak = () => {
    if (!other || other.closed) return;
    const next = slides[now + 1];
    other.document.title = "Notes";
    other.document.body.innerHTML = `<h2>${slides[now].querySelector("h1, h2").innerHTML} (${now + 1} / ${slides.length})</h2>`
      + notes[now].innerHTML + (next ? `<hr><p>Next: ${next.querySelector("h1, h2, .question").textContent}
        ${(next.querySelector(".question") || {}).textContent || ""}</p>` : "");
  };
  const show = number => {
    now = Math.max(0, Math.min(slides.length - 1, number));
    slides.forEach((s, i) => s.classList.toggle("now", i === now));
    notes.forEach((n, i) => n.classList.toggle("now", i === now));
    if (!body.classList.contains("all")) history.replaceState(null, "", `#${now + 1}`);
    speak();
  };
  const all = on => {
    body.classList.toggle("all", on);
    if (on) slides[now].scrollIntoView({ block: "center" });
  };
  const keys = {
    ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, Enter: 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1, Backspace: -1,
    Home: () => show(0), End: () => show(slides.length - 1), n: () => body.classList.toggle("told"),
    o: () => all(!body.classList.contains("all")), Escape: () => all(false),
    f: () => document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen(),
    s: () => { other = open("", "notes", "width=720,height=600"); if (other) { other.document.body.style.font = "22px/1.4 sans-serif"; speak(); } },
  };
  addEventListener("keydown", event => {
    const what = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (what === undefined) return;
    event.preventDefault();
    typeof what === "number" ? show(now + what) : what();
  });
  addEventListener("click", event => {
    const chosen = slides.indexOf(event.target.closest(".slide"));
    if (event.target.closest(".notes") || getSelection().toString()) return;
    if (body.classList.contains("all")) { if (chosen >= 0) { all(false); show(chosen); } return; }
    show(now + (event.clientX < innerWidth / 4 ? -1 : 1));
  });
  document.querySelectorAll(".slide:not(.title) .body").forEach(fit);
  body.classList.add("live");
  addEventListener("resize", size);
  addEventListener("hashchange", () => show(Number(location.hash.slice(1)) - 1));
  size();
  show((Number(location.hash.slice(1)) || 1) - 1);
})();
