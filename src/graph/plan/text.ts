/** Plans as text. */
import type { Buffer, Plan, Step } from "./plan.ts";
import { allSteps } from "./plan.ts";

function placeText(buffer: Buffer, { offsets }: Plan): string {
  const { place } = buffer;
  if (place.kind === "arena") return `arena+${offsets.get(buffer) ?? 0}`;
  if (place.kind === "argument") return `arg${place.index}`;
  return place.kind === "result" ? `result${place.index}` : `constant${place.index}`;
}

function remark(name: string): string {
  return name === "" ? "" : ` // ${name}`;
}

function stepLines(step: Step, plan: Plan, indent: string): readonly string[] {
  const inner = (steps: readonly Step[]): readonly string[] =>
    steps.flatMap((each) => stepLines(each, plan, `${indent}  `));
  const place = (buffer: Buffer): string => placeText(buffer, plan);
  switch (step.kind) {
    case "launch": {
      const [inputs, outputs] = [step.inputs, step.outputs].map((list) =>
        list.map(place).join(", "),
      );
      const { name } = step.kernel.kernel;
      const over = [...step.overwritten.values()].flat().map(place);
      const how = over.length === 0 ? "" : ` over ${over.join(", ")}`;
      return [`${indent}launch ${name}(${inputs}) -> ${outputs}${how}${remark(step.name)}`];
    }
    case "operation": {
      const [inputs, outputs] = [step.inputs, step.outputs].map((list) =>
        list.map(({ buffer, shape }) => `${place(buffer)} [${shape.join(", ")}]`).join(", "),
      );
      const { name } = step.operation;
      return [`${indent}operation ${name}(${inputs}) -> ${outputs}${remark(step.name)}`];
    }
    case "check":
      return [
        `${indent}check ${step.op.kind}(${step.operands.map(place).join(", ")}), by the host`,
      ];
    case "branch":
      return [
        `${indent}branch ${place(step.index)}, by the device or else the host {${remark(step.name)}`,
        ...step.branches.flatMap((branch, i) => [`${indent} case ${i}:`, ...inner(branch)]),
        `${indent}}`,
      ];
    case "while": {
      const how =
        step.trips === undefined
          ? `while ${place(step.predicate)}, asked each turn by the device or else the host`
          : `repeat ${step.trips} times`;
      const condition = step.trips === undefined ? inner(step.condition) : [];
      return [
        `${indent}${how} {${remark(step.name)}`,
        ...condition,
        ...(condition.length === 0 ? [] : [`${indent} do`]),
        ...inner(step.body),
        `${indent}}`,
      ];
    }
  }
}

export function planText(plan: Plan): string {
  const steps = [...allSteps(plan.steps)];
  const launches = steps.filter(({ kind }) => kind === "launch" || kind === "operation");
  const kernels = new Set(
    steps.flatMap((step): readonly object[] => {
      if (step.kind === "launch") return [step.kernel];
      return step.kind === "operation" ? [step.operation] : [];
    }),
  );
  const isOnePiece = launches.length === steps.length;
  return [
    `plan ${plan.name}, target ${plan.target.name}, matmul precision ${plan.matmulPrecision}`,
    `arena ${plan.arenaBytes} bytes`,
    ...Array.from(plan.aliases, ([result, argument]) => `result${result} lies in arg${argument}`),
    ...plan.steps.flatMap((step) => stepLines(step, plan, "")),
    `launches ${launches.length}, kernels ${kernels.size}, one graph ${isOnePiece ? "yes" : "no"}`,
  ].join("\n");
}
