/** Two stages of a kernel side by side, with what is new in each. */
import { useState } from "preact/hooks";
import type { Stage } from "../../protocol.ts";
import { Answered, Choice } from "../parts.tsx";
import type { Marking } from "../parts.tsx";
import type { Runner } from "../runner.ts";
import { useAnswer } from "../use-answer.ts";
import { LineList } from "./line-list.tsx";

export function StagesView({
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
  const answer = useAnswer(runner, "stages", { kernel }, `${run} ${kernel}`);
  return (
    <Answered answer={answer} what="Compiling" marking={marking}>
      {(stages) => <SideBySide stages={stages} marking={marking} />}
    </Answered>
  );
}

function SideBySide({
  stages,
  marking,
}: {
  readonly stages: readonly Stage[];
  readonly marking: Marking;
}) {
  const [left, setLeft] = useState("traced");
  const [right, setRight] = useState("PTX");
  return (
    <div class="stages">
      <ol class="stage-path" aria-label="All stages">
        {stages.map(({ name, lines, removed }, index) => {
          const added = lines.filter(({ change }) => change === "new").length;
          return (
            <li key={index}>
              <button
                type="button"
                class={name === right ? "chosen" : undefined}
                title={`Show ${name} on the right, and what comes before it on the left`}
                onClick={() => {
                  setLeft(stages[index - 1]?.name ?? name);
                  setRight(name);
                }}
              >
                {name}
                <small>
                  {index === 0 || name === "PTX"
                    ? ` ${lines.length} lines`
                    : ` +${added} −${removed}`}
                </small>
              </button>
            </li>
          );
        })}
      </ol>
      <div class="side-by-side">
        <StageColumn side="Left" name={left} stages={stages} choose={setLeft} marking={marking} />
        <StageColumn
          side="Right"
          name={right}
          stages={stages}
          choose={setRight}
          marking={marking}
        />
      </div>
    </div>
  );
}

function StageColumn({
  side,
  name,
  stages,
  choose,
  marking,
}: {
  readonly side: string;
  readonly name: string;
  readonly stages: readonly Stage[];
  readonly choose: (name: string) => void;
  readonly marking: Marking;
}) {
  const stage = stages.find((each) => each.name === name) ?? stages[0];
  if (stage === undefined) return null;
  return (
    <div class="stage-column">
      <Choice
        label={side}
        value={stage.name}
        options={stages.map((each) => [each.name, each.name])}
        choose={choose}
      />
      <LineList
        key={stage.name}
        lines={stage.lines}
        label={`${side}: ${stage.name}`}
        marking={marking}
      />
    </div>
  );
}
