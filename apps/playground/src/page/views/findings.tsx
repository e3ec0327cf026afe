/** What is wrong with the program, and what makes it slow; a deadlock with its wait-for graph. */
import type { RunReport } from "../../protocol.ts";
import { Answered, Empty, FindingCard, LineButton } from "../parts.tsx";
import type { Marking } from "../parts.tsx";
import type { Runner } from "../runner.ts";
import { useAnswer } from "../use-answer.ts";
import { WaitGraphDrawing } from "./wait-graph.tsx";

export function FindingsView({
  report,
  run,
  runner,
  kernel,
  marking,
}: {
  readonly report: RunReport;
  readonly run: number;
  readonly runner: Runner;
  readonly kernel: number;
  readonly marking: Marking;
}) {
  return (
    <div class="findings">
      {report.findings.length === 0 ? (
        <p class="verdict good">No race, deadlock or access out of bounds was found.</p>
      ) : (
        report.findings.map((finding, index) => (
          <FindingCard key={index} finding={finding} marking={marking} />
        ))
      )}
      {report.deadlock !== undefined && (
        <section aria-label="Wait-for graph">
          <h3>Who waits for whom</h3>
          <WaitGraphDrawing graph={report.deadlock} marking={marking} />
        </section>
      )}
      {report.kernels.length > 0 && (
        <section aria-label="Performance notes">
          <h3>What costs speed</h3>
          <Notes runner={runner} run={run} kernel={kernel} marking={marking} />
        </section>
      )}
    </div>
  );
}

function Notes({
  runner,
  run,
  kernel,
  marking,
}: {
  readonly runner: Runner;
  readonly run: number;
  readonly kernel: number;
  readonly marking: Marking;
}) {
  const answer = useAnswer(runner, "notes", { kernel }, `${run} ${kernel}`);
  return (
    <Answered answer={answer} what="Compiling" marking={marking}>
      {(notes) =>
        notes.length === 0 ? (
          <Empty>Nothing that the compiler knows of.</Empty>
        ) : (
          notes.map((note, index) => (
            <article class="finding note" key={index} aria-label={`${note.code}: ${note.message}`}>
              <h4>
                <span class="code">{note.code}</span> {note.message}{" "}
                <LineButton line={note.line} marking={marking} />
              </h4>
              <dl>
                <div>
                  <dt>Because</dt>
                  <dd>{note.because}</dd>
                </div>
                <div class="remedy">
                  <dt>Remedy</dt>
                  <dd>{note.remedy}</dd>
                </div>
              </dl>
            </article>
          ))
        )
      }
    </Answered>
  );
}
