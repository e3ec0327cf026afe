/** Programs of instructions that each lane runs for itself. */
import { testGroups } from "./run.ts";

const groups = ["integer", "float", "half", "compare", "convert"];
testGroups((group) => groups.includes(group), { reordered: 4, oneIn: 2 });
