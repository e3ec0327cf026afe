/**
 * A kernel of about `ops` ops on tiles: reductions, transposes and arithmetic, each using the last. It is
 * written as text, since tracing would take longer than what is measured.
 */
import type { Kernel } from "../../src/ir/node.ts";
import { parseModule } from "../../src/ir/parser/parser.ts";

const wide = "tile<f32, [64, 128]>";
const tall = "tile<f32, [128, 64]>";

export function longKernel(ops: number): Kernel {
  const lines: string[] = [];
  let last = 3;
  const add = (text: string, type: string): number => {
    lines.push(`  %${last + 1} = ${text} : ${type}`);
    last += 1;
    return last;
  };
  let tile = last;
  while (lines.length < ops) {
    const greatest = add(`reduce %${tile} {fn = max, axes = [1]}`, "tile<f32, [64]>");
    const column = add(`reshape %${greatest} {shape = [64, 1]}`, "tile<f32, [64, 1]>");
    const repeated = add(`broadcast %${column} {shape = [64, 128], axes = [0, 1]}`, wide);
    const shifted = add(`binary %${tile}, %${repeated} {fn = sub}`, wide);
    const turned = add(`transpose %${shifted} {permutation = [1, 0]}`, tall);
    const power = add(`unary %${turned} {fn = exp}`, tall);
    const back = add(`transpose %${power} {permutation = [1, 0]}`, wide);
    tile = add(`binary %${back}, %${tile} {fn = add}`, wide);
  }
  const text = `kernel @long grid [i = 1] threads [main] (
  input %0 "x": ref<gmem, f32, [64, 128]>,
  output %1 "out": ref<gmem, f32, [64, 128]>
) {
  %2 = block_index {axis = "i"} : i32
  %3 = load %0 : ${wide}
${lines.join("\n")}
  store %1, %${tile}
  yield
}
`;
  const [kernel] = parseModule(text).kernels;
  if (kernel === undefined) throw new Error("the text has no kernel");
  return kernel;
}
