/** What a run gave: how it went, every launch's arrays as heat maps and numbers, and what was printed. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ArraySummary, HeatMap, LaunchSummary, RunReport } from "../../protocol.ts";
import { heatColour } from "../colours.ts";
import { Answered, Choice, Empty } from "../parts.tsx";
import type { Marking } from "../parts.tsx";
import type { Runner } from "../runner.ts";
import { useAnswer } from "../use-answer.ts";

interface ResultsProps {
  readonly report: RunReport;
  readonly run: number;
  readonly runner: Runner;
  readonly marking: Marking;
  readonly printed: readonly string[];
  readonly refused: readonly string[];
  readonly showFindings: () => void;
}

export function ResultsView(props: ResultsProps) {
  const { report, printed, refused } = props;
  const [chosen, setChosen] = useState(0);
  const launch = report.launches[Math.min(chosen, report.launches.length - 1)];
  return (
    <div class="results">
      <Verdict report={report} showFindings={props.showFindings} />
      {refused.length > 0 && (
        <div class="refused" role="alert">
          <strong>The page refused what the program tried:</strong>
          <ul>
            {refused.map((what, index) => (
              <li key={index}>{what}</li>
            ))}
          </ul>
          Programs here have no network, no storage and no way to other pages.
        </div>
      )}
      {report.launches.length > 1 && (
        <Choice
          label="Launch"
          value={chosen}
          options={report.launches.map((each, index) => [index, `${index + 1}: ${each.kernel}`])}
          choose={setChosen}
        />
      )}
      {launch !== undefined && <Launch {...props} launch={launch} number={chosen} />}
      {report.launches.length === 0 && report.findings.length === 0 && (
        <Empty>
          Nothing was launched. Export a kernel, or a function <code>main(device)</code> that runs
          one.
        </Empty>
      )}
      {printed.length > 0 && (
        <section aria-label="Printed">
          <h3>Printed</h3>
          <pre class="printed" tabIndex={0}>
            {printed.join("\n")}
          </pre>
        </section>
      )}
      {report.returned !== undefined && (
        <section>
          <h3>Returned by main</h3>
          <pre class="printed" tabIndex={0}>
            {report.returned}
          </pre>
        </section>
      )}
    </div>
  );
}

function Verdict({
  report,
  showFindings,
}: {
  readonly report: RunReport;
  readonly showFindings: () => void;
}) {
  const { findings, reference, milliseconds } = report;
  const time = `${Math.round(milliseconds)} ms`;
  if (findings.length > 0)
    return (
      <p class="verdict bad" data-testid="verdict">
        {findings.length === 1 ? "1 finding" : `${findings.length} findings`} in {time}:{" "}
        <button type="button" onClick={showFindings}>
          {[...new Set(findings.map(({ code }) => code))].join(", ")}
        </button>
      </p>
    );
  return (
    <p class="verdict good" data-testid="verdict">
      No findings, {time}.
      {reference !== undefined &&
        ` All ${reference.elements.toLocaleString("en")} elements lie within their error bound of the reference; the worst takes ${(100 * reference.worst).toFixed(1)} % of its bound.`}
    </p>
  );
}

function Launch({
  launch,
  number,
  ...props
}: ResultsProps & { readonly launch: LaunchSummary; readonly number: number }) {
  const details = [
    ...launch.dimensions.map(([name, value]) => `${name} = ${value}`),
    ...launch.scalars.map(([name, value]) => `${name} = ${value}`),
  ];
  return (
    <section aria-label={`Launch of ${launch.kernel}`}>
      <h3>
        {launch.kernel} on the {launch.device}
        {details.length > 0 && <small> with {details.join(", ")}</small>}
      </h3>
      <div class="arrays">
        {launch.arrays.map((array) => (
          <ArrayCard key={array.name} {...props} array={array} launch={number} />
        ))}
      </div>
    </section>
  );
}

function ArrayCard({
  array,
  launch,
  run,
  runner,
  marking,
}: ResultsProps & { readonly array: ArraySummary; readonly launch: number }) {
  const [open, setOpen] = useState(array.role !== "input");
  const number = (value: number): string => String(Number(value.toPrecision(5)));
  return (
    <div class={`array ${array.role}`}>
      <h4>
        {array.name}{" "}
        <small>
          {array.role === "input" ? "in" : array.role === "output" ? "out" : "in and out"}
        </small>
      </h4>
      <p class="type">
        {array.dtype} [{array.shape.join(" × ")}]
      </p>
      <Heat map={array.heat} least={array.least} greatest={array.greatest} name={array.name} />
      <p class="range">
        {number(array.least)} … {number(array.greatest)}, mean {number(array.mean)}
        {array.notANumber > 0 && <strong>, {array.notANumber} NaN</strong>}
      </p>
      {array.comparison !== undefined && (
        <p class={array.comparison.different === 0 ? "same" : "different"}>
          {array.comparison.different === 0
            ? `Same bits as the ${array.comparison.device}.`
            : `${array.comparison.different} of ${array.comparison.elements} elements differ from the ${array.comparison.device}; first [${array.comparison.first?.index.join(", ") ?? ""}]: ${array.comparison.first?.values.join(" and ") ?? ""}`}
        </p>
      )}
      <details
        open={open}
        onToggle={({ currentTarget }) => {
          setOpen(currentTarget.open);
        }}
      >
        <summary>Numbers</summary>
        {open && (
          <Values runner={runner} run={run} marking={marking} launch={launch} array={array.name} />
        )}
      </details>
    </div>
  );
}

function Heat({
  map,
  least,
  greatest,
  name,
}: {
  readonly map: HeatMap;
  readonly least: number;
  readonly greatest: number;
  readonly name: string;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context === null || context === undefined || map.rows * map.columns === 0) return;
    const image = context.createImageData(map.columns, map.rows);
    const span = greatest - least;
    map.cells.forEach((value, cell) => {
      const [red, green, blue] = heatColour(span === 0 ? 0.5 : (value - least) / span);
      image.data.set([red, green, blue, 255], 4 * cell);
    });
    context.putImageData(image, 0, 0);
  }, [map]);
  return (
    <canvas
      ref={canvas}
      class="heat"
      width={Math.max(1, map.columns)}
      height={Math.max(1, map.rows)}
      role="img"
      aria-label={`Heat map of ${name}, from ${least} to ${greatest}`}
    />
  );
}

function Values({
  runner,
  run,
  marking,
  launch,
  array,
}: {
  readonly runner: Runner;
  readonly run: number;
  readonly marking: Marking;
  readonly launch: number;
  readonly array: string;
}) {
  const [corner, setCorner] = useState({ row: 0, column: 0 });
  const asks = { launch, array, ...corner };
  const answer = useAnswer(runner, "values", asks, `${run} ${JSON.stringify(asks)}`);
  return (
    <Answered answer={answer} what="Reading" marking={marking}>
      {({ rows, columns, row, column, values }) => (
        <div class="values">
          <div class="values-table" tabIndex={0} role="region" aria-label={`Numbers of ${array}`}>
            <table>
              <thead>
                <tr>
                  <td />
                  {(values[0] ?? []).map((_, index) => (
                    <th key={index} scope="col">
                      {column + index}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {values.map((cells, index) => (
                  <tr key={index}>
                    <th scope="row">{row + index}</th>
                    {cells.map((cell, position) => (
                      <td key={position}>{cell}</td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {(rows > values.length || columns > (values[0]?.length ?? 0)) && (
            <p class="corner">
              <Corner
                label={`Row of ${array}`}
                text="from row"
                value={row}
                most={rows}
                change={(value) => {
                  setCorner({ row: value, column });
                }}
              />
              <Corner
                label={`Column of ${array}`}
                text="column"
                value={column}
                most={columns}
                change={(value) => {
                  setCorner({ row, column: value });
                }}
              />
            </p>
          )}
        </div>
      )}
    </Answered>
  );
}

function Corner({
  label,
  text,
  value,
  most,
  change,
}: {
  readonly label: string;
  readonly text: string;
  readonly value: number;
  readonly most: number;
  readonly change: (value: number) => void;
}) {
  return (
    <label>
      {text}{" "}
      <input
        type="number"
        aria-label={label}
        min={0}
        max={most - 1}
        value={value}
        onChange={({ currentTarget }) => {
          change(Math.max(0, Math.min(most - 1, Math.floor(Number(currentTarget.value)))));
        }}
      />{" "}
      of {most}{" "}
    </label>
  );
}
