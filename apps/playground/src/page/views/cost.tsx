/** What a kernel costs: work, bytes, what a block takes of a processor, where it lies on the roofline, and every line's part. */
import type { CostReport, Roofline } from "../../protocol.ts";
import { amount, Answered, bytesText, LineButton, timeText } from "../parts.tsx";
import type { Marking } from "../parts.tsx";
import type { Runner } from "../runner.ts";
import { useAnswer } from "../use-answer.ts";

export function CostView({
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
  const answer = useAnswer(runner, "cost", { kernel }, `${run} ${kernel}`);
  return (
    <Answered answer={answer} what="Compiling" marking={marking}>
      {(cost) => <Cost cost={cost} marking={marking} />}
    </Answered>
  );
}

function Cost({ cost, marking }: { readonly cost: CostReport; readonly marking: Marking }) {
  const { occupancy, roofline } = cost;
  const facts: readonly (readonly [string, string])[] = [
    ["Arithmetic", `${amount(cost.flops)} flops`],
    ["Transcendental", `${amount(cost.transcendentals)} calls`],
    ["Global memory", `${amount(cost.globalRead)}B read, ${amount(cost.globalWritten)}B written`],
    ["Shared memory", `${amount(cost.sharedRead)}B read, ${amount(cost.sharedWritten)}B written`],
    ["A block takes", `${cost.threads} threads, ${bytesText(cost.sharedBytes)} shared`],
    ["At once", `${occupancy.blocks} blocks a processor, limited by ${occupancy.limit}`],
    ["Registers", "not known here: no assembler runs in a browser"],
    ["At least", `${timeText(roofline.least)} on ${roofline.board}, bound by ${roofline.bound}`],
  ];
  return (
    <div class="cost">
      <dl class="facts">
        {facts.map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      {cost.unknownLoops.length > 0 && (
        <p class="empty">
          How often a loop runs is not known before the launch: its body counts once.{" "}
          {cost.unknownLoops.map((line, index) => (
            <LineButton key={index} line={line} marking={marking} />
          ))}
        </p>
      )}
      <h3>Roofline of {roofline.board}</h3>
      <RooflineDrawing roofline={roofline} />
      <h3>By line</h3>
      <LineTable cost={cost} marking={marking} />
    </div>
  );
}

const [width, height, left, bottom] = [620, 280, 60, 36];

function RooflineDrawing({ roofline }: { readonly roofline: Roofline }) {
  const { peak, bandwidth, intensity, peakOf, board } = roofline;
  const ridge = peak / bandwidth;
  const shown = Number.isFinite(intensity) && intensity > 0 ? intensity : 0.01;
  const [low, high] = [
    Math.log10(Math.min(0.1, shown / 4)),
    Math.log10(Math.max(ridge * 8, shown * 4)),
  ];
  const [least, most] = [Math.log10(bandwidth * 10 ** low), Math.log10(peak) + 0.3];
  const x = (value: number): number =>
    left + ((Math.log10(value) - low) / (high - low)) * (width - left - 16);
  const y = (value: number): number =>
    height - bottom - ((Math.log10(value) - least) / (most - least)) * (height - bottom - 20);
  const reach = Math.min(peak, shown * bandwidth);
  const decades = Array.from(
    { length: Math.floor(high) - Math.ceil(low) + 1 },
    (_, index) => Math.ceil(low) + index,
  );
  return (
    <div class="drawing" tabIndex={0} role="region" aria-label="Roofline, drawn">
      <svg
        class="roofline"
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="img"
        aria-label={`${amount(shown)} operations a byte; ${board} reaches ${amount(reach)} operations a second there, of ${amount(peak)} at most`}
      >
        {decades.map((decade) => (
          <g key={decade}>
            <line
              class="grid"
              x1={x(10 ** decade)}
              x2={x(10 ** decade)}
              y1={16}
              y2={height - bottom}
            />
            <text class="axis" x={x(10 ** decade)} y={height - bottom + 16} text-anchor="middle">
              {decade < 0 ? (10 ** decade).toFixed(-decade) : amount(10 ** decade)}
            </text>
          </g>
        ))}
        <text class="axis" x={(left + width) / 2} y={height - 4} text-anchor="middle">
          operations for each byte of global memory
        </text>
        <polyline
          class="roof"
          points={`${x(10 ** low)},${y(bandwidth * 10 ** low)} ${x(ridge)},${y(peak)} ${width - 16},${y(peak)}`}
        />
        <text class="axis" x={width - 20} y={y(peak) - 6} text-anchor="end">
          {amount(peak)}flop/s, {peakOf}
        </text>
        <text class="axis" x={x(10 ** low) + 10} y={y(bandwidth * 10 ** low) - 14}>
          {amount(bandwidth)}B/s
        </text>
        <line class="here" x1={x(shown)} x2={x(shown)} y1={y(reach)} y2={height - bottom} />
        <circle class="here" cx={x(shown)} cy={y(reach)} r={6} />
        <text
          class="strong"
          x={x(shown) + (x(shown) > width - 160 ? -10 : 10)}
          y={y(reach) + 22}
          text-anchor={x(shown) > width - 160 ? "end" : "start"}
        >
          {amount(reach)}flop/s
        </text>
      </svg>
    </div>
  );
}

function LineTable({ cost, marking }: { readonly cost: CostReport; readonly marking: Marking }) {
  const most = Math.max(1, ...cost.lines.map(({ instructions }) => instructions));
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Cost by line">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Line</th>
            <th scope="col">PTX instructions</th>
            <th scope="col">wgmma</th>
            <th scope="col">Accesses</th>
            <th scope="col">Conversions</th>
            <th scope="col">Lost to banks</th>
          </tr>
        </thead>
        <tbody>
          {cost.lines.map((each) => (
            <tr key={each.line} class={each.line === marking.marked ? "marked" : undefined}>
              <td>
                <LineButton line={each.line} marking={marking} />
              </td>
              <td>
                <span
                  class="bar"
                  style={{ width: `${Math.max(2, (90 * each.instructions) / most)}px` }}
                  aria-hidden="true"
                />{" "}
                {each.instructions}
              </td>
              <td>{each.products === 0 ? "" : each.products}</td>
              <td>{each.accesses}</td>
              <td>{each.conversions === 0 ? "" : `${Math.round(each.conversions)} cycles`}</td>
              <td>{each.lostToBanks === 0 ? "" : `${each.lostToBanks} wavefronts`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
