"""An exchange of chunks, step by step: pages turn it into a stepper, everything else shows all steps at once."""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ..errors import WorldError
from ..palette import INK, MUTED, RULE, chip, label_color, rank_color
from .canvas import canvas, png, write_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Message = tuple[int, int, int]
Contents = Sequence[Sequence[Sequence[Collection[int]]]]
COLUMNS = 2  # panels beside one another in the picture

STYLE = """
.rl-steps ol{list-style:none;margin:.6em 0;padding:0;display:grid;gap:1.2em;
grid-template-columns:repeat(auto-fill,minmax(min(19rem,100%),1fr))}
.rl-steps.rl-live ol{display:block}.rl-steps.rl-live li:not(.rl-now){display:none}
.rl-steps li{margin:0}.rl-steps p{margin:.2em 0}.rl-steps .rl-what{font-weight:600;min-height:1.6em}
.rl-steps table{border-collapse:separate!important;border-spacing:3px;margin:0!important;width:100%;max-width:26rem;
table-layout:fixed;color:inherit!important;font:13px/1.35 system-ui,sans-serif!important}
.rl-steps :is(tr,tr:hover,th,td){background:none!important;color:inherit!important}
.rl-steps :is(th,td){border:2px solid transparent!important;padding:3px!important;text-align:left!important;
vertical-align:top;font-weight:400;height:3.3em;white-space:nowrap}
.rl-steps thead th{height:auto}
.rl-steps td{border-color:rgba(128,128,128,.35)!important;border-radius:6px}
.rl-steps td.rl-got{border-color:var(--rl-from)!important}
.rl-steps i{display:inline-block;min-width:1.05em;margin-right:1px;border-radius:3px;font-style:normal;
text-align:center;font-weight:600;font-size:12px;line-height:1.4}
.rl-steps small{display:block;font-size:12px;color:inherit}
.rl-steps button{font:inherit;color:inherit;background:none;border:1px solid currentColor;border-radius:.4em;
padding:.15em .7em;margin-right:.4em;cursor:pointer}
.rl-steps button[aria-disabled=true]{cursor:default;border-color:rgba(128,128,128,.35)}
.rl-steps{overflow-x:auto}.rl-steps button:focus-visible{outline:2px solid currentColor;outline-offset:-4px}
@media print{.rl-steps.rl-live li{display:block!important}.rl-steps nav{display:none}}
"""

# No ids: several copies may stand on a page, and each finds itself.
SCRIPT = """
for(const box of document.querySelectorAll(".rl-steps:not(.rl-live)")){
const pages=[...box.querySelectorAll("li")],nav=box.querySelector("nav"),[back,play,next]=nav.children;
let at=0,timer=0;const still=matchMedia("(prefers-reduced-motion: reduce)");
const last=()=>at===pages.length-1;
const show=(to,move)=>{if(at===(at=Math.max(0,Math.min(pages.length-1,to)))&&move)return;
pages.forEach((page,i)=>page.classList.toggle("rl-now",i===at));
back.setAttribute("aria-disabled",at===0);next.setAttribute("aria-disabled",last());if(!move||still.matches)return;
const rows=pages[at].querySelectorAll("tbody tr");
for(const cell of pages[at].querySelectorAll("td.rl-got")){
const from=rows[cell.dataset.from].cells[cell.cellIndex].getBoundingClientRect(),to=cell.getBoundingClientRect();
for(const mark of cell.querySelectorAll("i.rl-in"))mark.animate(
[{transform:`translate(${from.left-to.left}px,${from.top-to.top}px)`},{transform:"none"}],
{duration:900,easing:"ease-in-out"})}};
const stop=()=>{clearInterval(timer);timer=0;play.textContent="Play"};
play.onclick=()=>{if(timer)return stop();play.textContent="Pause";show(last()?0:at+1,true);
timer=setInterval(()=>last()?stop():show(at+1,true),1900)};
back.onclick=()=>{stop();show(at-1)};next.onclick=()=>{stop();show(at+1,true)};
box.addEventListener("keydown",(event)=>{
const to={ArrowLeft:at-1,ArrowRight:at+1,Home:0,End:pages.length-1}[event.key];if(to===undefined)return;
event.preventDefault();event.stopPropagation();stop();show(to,event.key==="ArrowRight")});
box.classList.add("rl-live");nav.hidden=false;show(0)}
"""


class Steps:
    """The steps of an exchange, as a page and as a picture; made by :func:`steps`."""

    def __init__(self, contents: Contents, messages: Sequence[Sequence[Message]], title: str) -> None:
        self.contents = [[[sorted(chunk) for chunk in rank] for rank in step] for step in contents]
        self.messages, self.title = [list(step) for step in messages], title
        self.size = len(self.contents[0])

    def __repr__(self) -> str:
        """One line per step: who sent which chunk to whom."""
        lines = [self.title] if self.title else []
        for number in range(1, len(self.contents)):
            sent = ", ".join(f"{sender} → {receiver}: chunk {chunk}" for sender, receiver, chunk in self._sent(number))
            lines.append(f"step {number}   {sent}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        pages = "".join(self._page(number) for number in range(len(self.contents)))
        nav = "".join(f'<button type="button">{name}</button>' for name in ("Back", "Play", "Next"))
        return (
            f'<div class="rl-steps" role="group" aria-label="{html.escape(self.title)}"><style>{STYLE}</style>'
            f'<p class="rl-what">{html.escape(self.title)}</p><nav hidden>{nav}</nav>'
            f'<ol aria-live="polite">{pages}</ol><script>{SCRIPT}</script></div>'
        )

    def _repr_png_(self) -> bytes:
        return png(self.picture())

    def picture(self) -> Figure:
        """Draw all steps beside one another."""
        chunks = len(self.contents[0][0])
        across, down = chunks * 1.25 + 1.9, self.size + 1.9
        rows = -(-len(self.contents) // COLUMNS)
        figure, axes = canvas(0.5 + rows * 0.42 * down)
        figure.set_dpi(60)  # seen only where HTML is not: half the bytes
        for number in range(len(self.contents)):
            row, column = divmod(number, COLUMNS)
            self._draw(axes, number, column * across, row * down)
        axes.set_xlim(0, COLUMNS * across)
        axes.set_ylim(rows * down, 0)
        write_title(axes, self.title)
        return figure

    def _sent(self, number: int) -> list[Message]:
        return self.messages[number - 1] if number else []

    def _what(self, number: int) -> str:
        if not number:
            return "At the start"
        return f"After step {number} of {len(self.messages)}"

    def _page(self, number: int) -> str:
        heads = "".join(f'<th scope="col">chunk {chunk}</th>' for chunk in range(len(self.contents[0][0])))
        rows = ""
        for rank, row in enumerate(self.contents[number]):
            cells = "".join(self._cell(number, rank, chunk) for chunk in range(len(row)))
            rows += f'<tr><th scope="row">{chip(rank, f"rank {rank}")}</th>{cells}</tr>'
        return (
            f"<li><p>{self._what(number)}</p><table><thead><tr><th></th>{heads}</tr></thead>"
            f"<tbody>{rows}</tbody></table></li>"
        )

    def _cell(self, number: int, rank: int, chunk: int) -> str:
        sender, came = self._came(number, rank, chunk)
        marks = "".join(
            f"<i{' class=rl-in' if owner in came else ''} "
            f'style="background:{rank_color(owner)};color:{label_color(owner)}">{owner}</i>'
            for owner in self.contents[number][rank][chunk]
        )
        if sender is None:
            return f"<td>{marks}</td>"
        return (
            f'<td class="rl-got" data-from="{sender}" style="--rl-from:{rank_color(sender)}">{marks}'
            f"<small>{self._how(number, rank, chunk)} {sender}</small></td>"
        )

    def _came(self, number: int, rank: int, chunk: int) -> tuple[int | None, list[int]]:
        """Who sent a rank this chunk in a step, and whose numbers were in what came."""
        for sender, receiver, sent in self._sent(number):
            if (receiver, sent) == (rank, chunk):
                return sender, self.contents[number - 1][sender][chunk]
        return None, []

    def _how(self, number: int, rank: int, chunk: int) -> str:
        """Whether a rank added what came to its own, or took it as it was."""
        _, came = self._came(number, rank, chunk)
        return "copy of" if self.contents[number][rank][chunk] == came else "+ from"

    def _draw(self, axes, number: int, left: float, top: float) -> None:
        from matplotlib.patches import Rectangle

        axes.text(left, top + 0.45, self._what(number), color=INK, fontsize=11, va="center")
        for chunk in range(len(self.contents[0][0])):
            axes.text(left + 1.5 + 1.25 * chunk, top + 1.0, f"chunk {chunk}", color=MUTED, fontsize=8, va="center")
        for rank, row in enumerate(self.contents[number]):
            y = top + 1.3 + rank
            axes.text(left, y + 0.42, f"rank {rank}", color=INK, fontsize=9, va="center")
            for chunk, owners in enumerate(row):
                x = left + 1.5 + 1.25 * chunk
                sender, _ = self._came(number, rank, chunk)
                edge = RULE if sender is None else rank_color(sender)
                width = 0.8 if sender is None else 2
                axes.add_patch(Rectangle((x, y), 1.15, 0.86, facecolor="none", edgecolor=edge, linewidth=width))
                for place, owner in enumerate(owners):
                    mark = 1.11 / max(4, self.size)
                    corner = (x + mark * place + 0.04, y + 0.07)
                    axes.add_patch(Rectangle(corner, mark - 0.04, 0.4, facecolor=rank_color(owner), linewidth=0))
                    middle = (corner[0] + mark / 2 - 0.02, y + 0.27)
                    axes.text(*middle, str(owner), color=label_color(owner), fontsize=7, ha="center", va="center")
                if sender is not None:
                    axes.text(
                        x + 0.06,
                        y + 0.66,
                        f"{self._how(number, rank, chunk)} {sender}",
                        color=INK,
                        fontsize=7,
                        va="center",
                    )


def steps(contents: Contents, messages: Sequence[Sequence[Message]], title: str = "") -> Steps:
    """Show how chunks of a tensor went from rank to rank, from a recorded exchange.

    Args:
        contents: ``contents[step][rank][chunk]`` lists the ranks whose numbers are in that chunk on that rank;
            step 0 is the start.
        messages: for each later step what was sent: ``(sender, receiver, chunk)``.
        title: one sentence above the steps.

    Returns:
        An object that a notebook shows by itself: buttons that step through the exchange where scripts run, all
        steps below one another where they do not, a picture where HTML is not shown.

    Raises:
        WorldError: there is not one more state than steps, a state misses ranks or chunks, or a message names a
            rank or a chunk that is not there.

    Used in the chapter *all-reduce*.
    """
    if len(contents) != len(messages) + 1:
        raise WorldError(f"steps() got {len(contents)} states and {len(messages)} steps; it needs one state more.")
    ranks, chunks = len(contents[0]), len(contents[0][0]) if contents[0] else 0
    if not chunks or any(len(state) != ranks or {len(row) for row in state} != {chunks} for state in contents):
        raise WorldError("steps() needs the same ranks and the same chunks in every state.")
    for sender, receiver, chunk in (message for step in messages for message in step):
        if not (0 <= sender < ranks and 0 <= receiver < ranks and 0 <= chunk < chunks):
            raise WorldError(f"There is no message {(sender, receiver, chunk)} among {ranks} ranks, {chunks} chunks.")
    return Steps(contents, messages, title)
