/** The right side: tabs of views on the last run. */
import { useEffect, useState } from "preact/hooks";
import type { RunReport } from "../protocol.ts";
import { Choice, Empty, Progress } from "./parts.tsx";
import type { Marking } from "./parts.tsx";
import type { Runner } from "./runner.ts";
import { viewNames, viewTitles } from "./state.ts";
import type { RunState, Session, ViewName } from "./state.ts";
import { CostView } from "./views/cost.tsx";
import { FindingsView } from "./views/findings.tsx";
import { GraphView } from "./views/graph.tsx";
import { LayoutsView } from "./views/layouts.tsx";
import { MemoryView } from "./views/memory.tsx";
import { ResultsView } from "./views/results.tsx";
import { StagesView } from "./views/stages.tsx";
import { TimelineView } from "./views/timeline.tsx";

export interface PanelProps {
  readonly session: Session;
  readonly run: RunState;
  readonly runner: Runner;
  readonly marking: Marking;
  readonly printed: readonly string[];
  readonly refused: readonly string[];
  readonly view: ViewName;
  readonly show: (view: ViewName) => void;
  readonly runNow: () => void;
}

/** Of a StableHLO program: it is evaluated, so that its kernels have neither timeline nor memory of a run. */
const graphViews: ReadonlySet<ViewName> = new Set([
  "results",
  "findings",
  "graph",
  "stages",
  "layouts",
  "cost",
]);

export function Panel(props: PanelProps) {
  const { session, run, view, show } = props;
  const report = run.kind === "finished" ? run.report : undefined;
  const isGraph = session.program.language === "stablehlo";
  const offered = viewNames.filter((name) => (isGraph ? graphViews.has(name) : name !== "graph"));
  const shown = offered.includes(view) ? view : "results";
  const step = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    const next = offered[(offered.indexOf(shown) + by + offered.length) % offered.length];
    if (next === undefined) return;
    show(next);
    document.getElementById(`tab-${next}`)?.focus();
    event.preventDefault();
  };
  return (
    <section class="panel" aria-label="What the run shows">
      <div class="tabs" role="tablist" aria-label="Views" onKeyDown={step}>
        {offered.map((name) => {
          const count = name === "findings" ? (report?.findings.length ?? 0) : 0;
          return (
            <button
              key={name}
              type="button"
              role="tab"
              id={`tab-${name}`}
              aria-selected={name === shown}
              aria-controls="view"
              tabIndex={name === shown ? 0 : -1}
              onClick={() => {
                show(name);
              }}
            >
              {viewTitles[name]}
              {count > 0 && <span class="badge">{count}</span>}
            </button>
          );
        })}
      </div>
      <div class="view" role="tabpanel" id="view" aria-labelledby={`tab-${shown}`} tabIndex={0}>
        <PanelContent {...props} view={shown} />
      </div>
    </section>
  );
}

function PanelContent(props: PanelProps) {
  const { session, run, runNow } = props;
  if (run.kind === "running") return <Progress message={run.message} since={run.since} />;
  if (run.kind === "stopped") return <Empty>The run was stopped.</Empty>;
  if (run.kind === "not loaded")
    return <Empty>The compiler could not be loaded. Run tries it again.</Empty>;
  if (run.kind === "cut off")
    return (
      <p class="verdict bad" data-testid="verdict">
        {run.why}
      </p>
    );
  if (run.kind === "timed out")
    return (
      <p class="verdict bad" data-testid="verdict">
        The run took longer than {run.seconds} s and was stopped. More has the limit.
      </p>
    );
  if (run.kind === "none")
    return session.trusted ? (
      <Progress message="Loading the compiler" />
    ) : (
      <div class="stranger">
        <h2>This program came with a link</h2>
        <p>
          Read it before you run it. It will run in this tab alone, without network, storage or
          access to other pages, and can be stopped.
        </p>
        <button type="button" class="primary" onClick={runNow}>
          ▶ Run it
        </button>
      </div>
    );
  return <Report {...props} report={run.report} number={run.number} />;
}

function Report({
  report,
  number,
  view,
  show,
  ...props
}: PanelProps & { readonly report: RunReport; readonly number: number }) {
  const [kernel, setKernel] = useState(0);
  useEffect(() => {
    setKernel(0);
  }, [number]);
  const chosen = Math.min(kernel, Math.max(0, report.kernels.length - 1));
  const { runner, marking, printed, refused, session } = props;
  const own = { runner, marking, run: number, kernel: chosen };
  const isOfKernel = view !== "results" && view !== "graph";
  if (isOfKernel && view !== "findings" && report.kernels.length === 0)
    return <Empty>The program has no kernel.</Empty>;
  const launch = report.kernels[chosen]?.launch;
  const emulated = launch !== undefined && report.launches[launch]?.device !== "simulator";
  const name = report.kernels[chosen]?.name ?? session.program.name;
  const views: { readonly [V in ViewName]: () => preact.ComponentChildren } = {
    results: () => (
      <ResultsView
        {...{ report, runner, marking, printed, refused, run: number }}
        showFindings={() => {
          show("findings");
        }}
      />
    ),
    findings: () => <FindingsView {...own} report={report} />,
    stages: () => <StagesView {...own} />,
    layouts: () => <LayoutsView {...own} />,
    memory: () => <MemoryView {...own} {...{ launch, emulated }} />,
    timeline: () => <TimelineView {...own} {...{ launch, name, emulated }} />,
    cost: () => <CostView {...own} />,
    graph: () => <GraphView {...own} />,
  };
  return (
    <>
      {isOfKernel && report.kernels.length > 1 && (
        <Choice
          label="Kernel"
          value={chosen}
          options={report.kernels.map((each, index) => [
            index,
            `${each.name}${each.line === undefined ? "" : `, line ${each.line}`}`,
          ])}
          choose={setKernel}
        />
      )}
      <div key={`${number} ${chosen} ${view}`} class="view-body">
        {views[view]()}
      </div>
    </>
  );
}
