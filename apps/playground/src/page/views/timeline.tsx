/**
 * A launch over time: a row for every program thread and for what runs beside it, in steps of the simulator. Zoom with the
 * wheel or the keys + and −, move by dragging or with the arrow keys; a click marks the line.
 */
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { TimelineReport, TimelineSpan } from "../../protocol.ts";
import { opColour } from "../colours.ts";
import { Answered, AsSimulated, Empty, LineButton } from "../parts.tsx";
import type { Marking } from "../parts.tsx";
import type { Runner } from "../runner.ts";
import { useAnswer } from "../use-answer.ts";

interface TimelineProps {
  readonly runner: Runner;
  readonly run: number;
  readonly launch: number | undefined;
  readonly emulated: boolean;
  readonly name: string;
  readonly marking: Marking;
}

export function TimelineView({ runner, run, launch, name, emulated, marking }: TimelineProps) {
  const key = launch === undefined ? undefined : `${run} ${launch}`;
  const answer = useAnswer(runner, "timeline", { launch: launch ?? 0 }, key);
  if (launch === undefined) return <Empty>This kernel was not launched.</Empty>;
  const save = async (): Promise<void> => {
    const text = await runner.ask("trace", { launch });
    const anchor = document.createElement("a");
    anchor.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    anchor.download = `${name}.trace.json`;
    anchor.click();
    URL.revokeObjectURL(anchor.href);
  };
  return (
    <Answered answer={answer} what="Drawing" marking={marking}>
      {(report) => (
        <div class="timeline">
          {emulated && <AsSimulated />}
          <Tracks report={report} marking={marking} save={() => void save()} />
        </div>
      )}
    </Answered>
  );
}

const rowHeight = 24;
const labelWidth = 150;
const axisHeight = 22;
/** More rows than this are more than anybody reads. */
const mostRows = 60;

interface Window {
  readonly from: number;
  readonly to: number;
}

function Tracks({
  report,
  marking,
  save,
}: {
  readonly report: TimelineReport;
  readonly marking: Marking;
  readonly save: () => void;
}) {
  const { tracks, spans, steps, complete } = report;
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useParentWidth(canvas);
  const [shown, setShown] = useState<Window>({ from: 0, to: Math.max(10, Math.min(steps, 400)) });
  const [chosen, setChosen] = useState<TimelineSpan>();
  const drag = useRef<{ readonly x: number; readonly window: Window }>(undefined);
  const rows = tracks.slice(0, mostRows);
  const height = axisHeight + rows.length * rowHeight + 4;
  const scale = (width - labelWidth) / (shown.to - shown.from);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context !== null && context !== undefined)
      drawTracks(context, { rows, spans, shown, width, height, marked: marking.marked, chosen });
  }, [report, shown, width, marking.marked, chosen]);
  const zoom = (factor: number, middle = (shown.from + shown.to) / 2): void => {
    setShown(zoomed(shown, factor, middle, steps));
  };
  const spanAt = (x: number, y: number): TimelineSpan | undefined => {
    const track = Math.floor((y - axisHeight) / rowHeight);
    const time = shown.from + (x - labelWidth) / scale;
    const slack = 2 / scale;
    return spans.find(
      (span) => span.track === track && time >= span.from - slack && time < span.to + slack,
    );
  };
  const choose = (span: TimelineSpan | undefined): void => {
    setChosen(span);
    if (span?.line !== undefined) marking.mark(span.line);
  };
  return (
    <>
      <Tools
        zoom={zoom}
        all={() => {
          setShown({ from: 0, to: Math.max(10, steps) });
        }}
        save={save}
      />
      <div class="timeline-canvas">
        <canvas
          ref={canvas}
          width={width}
          height={height}
          tabIndex={0}
          role="application"
          aria-roledescription="timeline"
          aria-label={`Timeline of ${tracks.length} tracks and ${steps} steps. Arrow keys move from span to span, plus and minus zoom.`}
          onWheel={(event) => {
            if (
              !event.ctrlKey &&
              !event.shiftKey &&
              Math.abs(event.deltaX) < Math.abs(event.deltaY)
            ) {
              zoom(
                event.deltaY > 0 ? 1.25 : 0.8,
                shown.from + (event.offsetX - labelWidth) / scale,
              );
              event.preventDefault();
            }
          }}
          onPointerDown={(event) => {
            drag.current = { x: event.offsetX, window: shown };
          }}
          onPointerMove={(event) => {
            if (drag.current === undefined || event.buttons === 0) return;
            setShown(moved(drag.current.window, (drag.current.x - event.offsetX) / scale, steps));
          }}
          onClick={(event) => {
            if (Math.abs((drag.current?.x ?? 0) - event.offsetX) < 4)
              choose(spanAt(event.offsetX, event.offsetY));
          }}
          onKeyDown={(event) => {
            if (event.key === "+" || event.key === "=") zoom(0.5);
            else if (event.key === "-") zoom(2);
            else {
              const next = neighbour(spans, chosen, event.key);
              if (next === undefined) return;
              choose(next);
              setShown(withinSight(next, shown, steps));
            }
            event.preventDefault();
          }}
        />
      </div>
      <ChosenSpan span={chosen} tracks={tracks} marking={marking} />
      {!complete && (
        <p class="empty">The run was longer than what is recorded of it: this is its beginning.</p>
      )}
      {tracks.length > mostRows && (
        <p class="empty">
          The first {mostRows} of {tracks.length} tracks.
        </p>
      )}
    </>
  );
}

function Tools({
  zoom,
  all,
  save,
}: {
  readonly zoom: (factor: number) => void;
  readonly all: () => void;
  readonly save: () => void;
}) {
  const zoomBy = (factor: number) => () => {
    zoom(factor);
  };
  return (
    <p class="timeline-tools">
      <button type="button" onClick={zoomBy(0.5)} aria-label="Zoom in">
        +
      </button>
      <button type="button" onClick={zoomBy(2)} aria-label="Zoom out">
        −
      </button>
      <button type="button" onClick={all}>
        All
      </button>
      <button type="button" onClick={save}>
        Save for Perfetto
      </button>
      <span class="legend">
        <i class="runs" /> runs <i class="waits" /> waits <i class="beside" /> copies and products
        beside it
      </span>
    </p>
  );
}

function ChosenSpan({
  span,
  tracks,
  marking,
}: {
  readonly span: TimelineSpan | undefined;
  readonly tracks: TimelineReport["tracks"];
  readonly marking: Marking;
}) {
  const track = span === undefined ? undefined : tracks[span.track];
  const iteration =
    span === undefined || span.iteration === "" ? "" : `, iteration ${span.iteration}`;
  return (
    <p class="element-text" role="status" data-testid="span">
      {span === undefined || track === undefined ? (
        "Choose a span to see its op and line."
      ) : (
        <>
          {track.block}, {track.name}: {span.kind === "waits" ? "waits at " : ""}
          {span.op}
          {iteration}, steps {span.from} to {span.to}{" "}
          <LineButton line={span.line} marking={marking} />
        </>
      )}
    </p>
  );
}

/** The width that is there for a canvas. */
function useParentWidth(canvas: RefObject<HTMLCanvasElement | null>): number {
  const [width, setWidth] = useState(900);
  useEffect(() => {
    const parent = canvas.current?.parentElement;
    if (parent === null || parent === undefined) return undefined;
    const fit = (): void => {
      setWidth(Math.max(320, parent.clientWidth));
    };
    fit();
    const observer = new ResizeObserver(fit);
    observer.observe(parent);
    return () => {
      observer.disconnect();
    };
  }, []);
  return width;
}

function zoomed({ from, to }: Window, factor: number, middle: number, steps: number): Window {
  const length = Math.max(8, Math.min(Math.max(10, steps), (to - from) * factor));
  const share = (middle - from) / (to - from);
  return moved({ from: middle - share * length, to: middle + (1 - share) * length }, 0, steps);
}

function moved({ from, to }: Window, by: number, steps: number): Window {
  const length = to - from;
  const begin = Math.max(0, Math.min(from + by, Math.max(10, steps) - length));
  return { from: begin, to: begin + length };
}

function withinSight(span: TimelineSpan, shown: Window, steps: number): Window {
  if (span.from >= shown.from && span.to <= shown.to) return shown;
  return moved(shown, span.from - (shown.from + shown.to) / 2, steps);
}

/** The span that a key leads to. */
function neighbour(
  spans: readonly TimelineSpan[],
  from: TimelineSpan | undefined,
  key: string,
): TimelineSpan | undefined {
  if (from === undefined) return key.startsWith("Arrow") ? spans[0] : undefined;
  const track = spans.filter((span) => span.track === from.track);
  const place = track.indexOf(from);
  if (key === "ArrowRight") return track[place + 1];
  if (key === "ArrowLeft") return track[place - 1];
  if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
  const other = spans.filter((span) => span.track === from.track + (key === "ArrowDown" ? 1 : -1));
  return other.reduce<TimelineSpan | undefined>(
    (best, span) =>
      best === undefined || Math.abs(span.from - from.from) < Math.abs(best.from - from.from)
        ? span
        : best,
    undefined,
  );
}

interface DrawnTracks {
  readonly rows: TimelineReport["tracks"];
  readonly spans: readonly TimelineSpan[];
  readonly shown: Window;
  readonly width: number;
  readonly height: number;
  readonly marked: number | undefined;
  readonly chosen: TimelineSpan | undefined;
}

function drawTracks(context: CanvasRenderingContext2D, drawn: DrawnTracks): void {
  const { rows, spans, shown, width, height, marked, chosen } = drawn;
  const style = getComputedStyle(context.canvas);
  const colour = (name: string): string => style.getPropertyValue(name);
  const scale = (width - labelWidth) / (shown.to - shown.from);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  drawAxis(context, shown, scale, width, height, colour("--muted-solid"));
  rows.forEach(({ block, name, beside }, index) => {
    const top = axisHeight + index * rowHeight;
    const isFirst = rows[index - 1]?.block !== block;
    context.fillStyle = colour("--line-solid");
    if (isFirst) context.fillRect(0, top, width, 1);
    context.fillStyle = colour(beside ? "--muted-solid" : "--text-solid");
    context.fillText(
      isFirst ? `${block.replace("block ", "")} ${name}` : name,
      6,
      top + rowHeight / 2,
      labelWidth - 12,
    );
  });
  for (const span of spans) {
    if (span.to < shown.from || span.from > shown.to || span.track >= rows.length) continue;
    const left = Math.max(labelWidth, labelWidth + (span.from - shown.from) * scale);
    const right = Math.min(width, labelWidth + (span.to - shown.from) * scale);
    const top = axisHeight + span.track * rowHeight + 4;
    const isMarked = span.line !== undefined && span.line === marked;
    context.globalAlpha = marked !== undefined && !isMarked ? 0.45 : 1;
    context.fillStyle = span.kind === "waits" ? colour("--wait-solid") : opColour(span.op);
    const tall = span.kind === "waits" ? rowHeight - 14 : rowHeight - 8;
    context.fillRect(left, top + (rowHeight - 8 - tall) / 2, Math.max(1, right - left - 0.5), tall);
    if (right - left > 44) {
      context.fillStyle = span.kind === "waits" ? colour("--text-solid") : "#0c0f14";
      context.fillText(span.op, left + 4, top + (rowHeight - 8) / 2, right - left - 8);
    }
    context.globalAlpha = 1;
    if (isMarked || span === chosen) {
      context.strokeStyle = colour(span === chosen ? "--text-solid" : "--accent-solid");
      context.lineWidth = span === chosen ? 2 : 1.5;
      context.strokeRect(left, top - 1, Math.max(2, right - left), rowHeight - 6);
    }
  }
}

function drawAxis(
  context: CanvasRenderingContext2D,
  { from, to }: Window,
  scale: number,
  width: number,
  height: number,
  colour: string,
): void {
  const rough = (to - from) / 8;
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = unit * ([1, 2, 5, 10].find((each) => each * unit >= rough) ?? 10);
  context.fillStyle = colour;
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
    const x = labelWidth + (time - from) * scale;
    if (x > width - 30) break;
    context.globalAlpha = 0.25;
    context.fillRect(x, axisHeight - 6, 1, height);
    context.globalAlpha = 1;
    context.fillText(String(time), x + 3, axisHeight / 2);
  }
}
