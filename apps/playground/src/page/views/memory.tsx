/** The shared memory of a block over time: its buffers by their bytes, and who reads and writes them at which step. */
import type { MemoryReport } from "../../protocol.ts";
import { Answered, AsSimulated, bytesText, Empty, LineButton } from "../parts.tsx";
import type { Marking } from "../parts.tsx";
import type { Runner } from "../runner.ts";
import { useAnswer } from "../use-answer.ts";

export function MemoryView({
  runner,
  run,
  launch,
  emulated,
  marking,
}: {
  readonly runner: Runner;
  readonly run: number;
  readonly launch: number | undefined;
  readonly emulated: boolean;
  readonly marking: Marking;
}) {
  const key = launch === undefined ? undefined : `${run} ${launch}`;
  const answer = useAnswer(runner, "memory", { launch: launch ?? 0 }, key);
  if (launch === undefined) return <Empty>This kernel was not launched.</Empty>;
  return (
    <Answered answer={answer} what="Placing" marking={marking}>
      {(report) =>
        report.buffers.length === 0 ? (
          <Empty>The kernel takes no shared memory.</Empty>
        ) : (
          <>
            {emulated && <AsSimulated />}
            <MemoryMap report={report} marking={marking} />
          </>
        )
      }
    </Answered>
  );
}

const width = 880;
const labelWidth = 150;
const leastHeight = 26;
const tallest = 420;

function MemoryMap({
  report,
  marking,
}: {
  readonly report: MemoryReport;
  readonly marking: Marking;
}) {
  const { buffers, accesses, bytes, limit, steps, block } = report;
  const sorted = [...buffers.entries()].sort(([, a], [, b]) => a.offset - b.offset);
  const heights = sorted.map(([, buffer]) =>
    Math.max(leastHeight, (buffer.bytes / Math.max(1, bytes)) * tallest),
  );
  const tops = heights.map((_, index) =>
    heights.slice(0, index).reduce((sum, each) => sum + each + 3, 20),
  );
  const height = (tops.at(-1) ?? 0) + (heights.at(-1) ?? 0) + 8;
  const x = (step: number): number =>
    labelWidth + (step / Math.max(1, steps)) * (width - labelWidth - 8);
  return (
    <div class="memory">
      <p>
        {bytesText(bytes)} of at most {bytesText(limit)} a block (
        {((100 * bytes) / limit).toFixed(0)} %)
        {block === "" ? "" : `; the block at ${block}`}.{" "}
        <span class="legend">
          <i class="written" /> written <i class="read" /> read
        </span>
      </p>
      <div class="drawing" tabIndex={0} role="region" aria-label="Shared memory over time, drawn">
        <svg
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={`Shared memory over ${steps} steps: ${buffers.map(({ name, bytes: size }) => `${name}, ${size} bytes`).join("; ")}`}
        >
          <text x={labelWidth} y={12} class="axis">
            step 0
          </text>
          <text x={width - 8} y={12} class="axis" text-anchor="end">
            step {steps}
          </text>
          {sorted.map(([number, buffer], row) => {
            const [top = 0, tall = 0] = [tops[row], heights[row]];
            return (
              <g key={number}>
                <rect
                  class="buffer"
                  x={labelWidth}
                  y={top}
                  width={width - labelWidth - 8}
                  height={tall}
                />
                <text x={4} y={top + 14} class="strong">
                  {buffer.name}
                </text>
                {tall >= 34 && (
                  <text x={4} y={top + 29} class="axis">
                    {buffer.offset} … {buffer.offset + buffer.bytes - 1}
                  </text>
                )}
                {accesses
                  .filter((access) => access.buffer === number)
                  .map((access, index) => {
                    const isMarked = access.line !== undefined && access.line === marking.marked;
                    return (
                      <rect
                        key={index}
                        class={`access ${access.mode}${isMarked ? " marked" : ""}`}
                        x={x(access.from)}
                        y={top + (access.mode === "write" ? 2 : tall / 2 + 1)}
                        width={Math.max(1.5, x(access.to) - x(access.from))}
                        height={Math.max(3, tall / 2 - 3)}
                        onClick={() => {
                          marking.mark(access.line);
                        }}
                      >
                        <title>{`${access.thread}: ${access.op}, steps ${access.from} to ${access.to}, line ${access.line ?? "?"}`}</title>
                      </rect>
                    );
                  })}
              </g>
            );
          })}
        </svg>
      </div>
      <BufferTable report={report} marking={marking} />
    </div>
  );
}

function BufferTable({
  report,
  marking,
}: {
  readonly report: MemoryReport;
  readonly marking: Marking;
}) {
  const { buffers, accesses } = report;
  const sorted = [...buffers.entries()].sort(([, a], [, b]) => a.offset - b.offset);
  return (
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">Buffer</th>
          <th scope="col">Holds</th>
          <th scope="col">Bytes</th>
          <th scope="col">From byte</th>
          <th scope="col">Touched by</th>
        </tr>
      </thead>
      <tbody>
        {sorted.map(([number, buffer]) => {
          const lines = [
            ...new Set(
              accesses.filter(({ buffer: each }) => each === number).map(({ line }) => line),
            ),
          ];
          return (
            <tr key={number}>
              <td>{buffer.name}</td>
              <td>{buffer.holds}</td>
              <td>{bytesText(buffer.bytes)}</td>
              <td>{buffer.offset}</td>
              <td>
                {lines.map((line) => (
                  <LineButton key={line} line={line} marking={marking} />
                ))}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
