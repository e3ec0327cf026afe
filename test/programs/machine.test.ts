/** Programs of memory, of lanes and blocks that work together, and of asynchronous copies. */
import { testGroups } from "./run.ts";

const others = ["integer", "float", "half", "compare", "convert"];
testGroups((group) => !others.includes(group) && !/mma|matrices/.test(group), {
  reordered: 4,
  oneIn: 6,
});
