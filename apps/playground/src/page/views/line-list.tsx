/**
 * Lines of text, thousands of them: only those in sight are in the page. Lines that come from the marked line of the
 * program are marked too, and the first of them is shown.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { StageLine } from "../../protocol.ts";
import type { Marking } from "../parts.tsx";

const lineHeight = 19;
const shownBefore = 12;

export function LineList({
  lines,
  label,
  marking,
}: {
  readonly lines: readonly StageLine[];
  readonly label: string;
  readonly marking: Marking;
}) {
  const list = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [current, setCurrent] = useState(0);
  const id = `lines-${label.replace(/\W+/g, "-")}`;
  useEffect(() => {
    const element = list.current;
    if (element === null || marking.marked === undefined) return;
    const first = lines.findIndex(({ line }) => line === marking.marked);
    const place = first * lineHeight;
    const seen = place >= element.scrollTop && place < element.scrollTop + element.clientHeight;
    if (first >= 0 && !seen) element.scrollTop = Math.max(0, place - element.clientHeight / 3);
  }, [marking.marked, lines]);
  const begin = Math.max(0, Math.floor(view.top / lineHeight) - shownBefore);
  const end = Math.min(
    lines.length,
    Math.ceil((view.top + view.height) / lineHeight) + shownBefore,
  );
  const step = (event: KeyboardEvent): void => {
    const moves: { readonly [key: string]: number } = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: 20,
      PageUp: -20,
    };
    const move = moves[event.key];
    if (event.key === "Enter" || event.key === " ") marking.mark(lines[current]?.line);
    else if (move === undefined) return;
    else {
      const next = Math.max(0, Math.min(lines.length - 1, current + move));
      setCurrent(next);
      const element = list.current;
      if (element !== null) {
        const place = next * lineHeight;
        if (place < element.scrollTop) element.scrollTop = place;
        if (place > element.scrollTop + element.clientHeight - 2 * lineHeight)
          element.scrollTop = place - element.clientHeight + 2 * lineHeight;
      }
    }
    event.preventDefault();
  };
  return (
    <div
      ref={list}
      class="line-list"
      role="listbox"
      tabIndex={0}
      aria-label={label}
      aria-activedescendant={current >= begin && current < end ? `${id}-${current}` : undefined}
      onScroll={({ currentTarget }) => {
        setView({ top: currentTarget.scrollTop, height: currentTarget.clientHeight });
      }}
      onKeyDown={step}
    >
      <div style={{ height: `${begin * lineHeight}px` }} aria-hidden="true" />
      {lines.slice(begin, end).map(({ text, line, change }, index) => {
        const number = begin + index;
        const isMarked = line !== undefined && line === marking.marked;
        const names = [
          "text-line",
          change === "new" && "new",
          isMarked && "marked",
          number === current && "current",
        ];
        return (
          <div
            key={number}
            id={`${id}-${number}`}
            role="option"
            aria-selected={isMarked}
            aria-label={text === "" ? "an empty line" : undefined}
            aria-setsize={lines.length}
            aria-posinset={number + 1}
            class={names.filter(Boolean).join(" ")}
            data-line={line}
            onClick={() => {
              setCurrent(number);
              marking.mark(line);
            }}
          >
            {text === "" ? " " : text}
          </div>
        );
      })}
      <div style={{ height: `${(lines.length - end) * lineHeight}px` }} aria-hidden="true" />
    </div>
  );
}
