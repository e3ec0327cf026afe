/** Programs of sparse products, and of those that few programs use. */
import { testGroups } from "./run.ts";

testGroups((group) => /sparse|products/.test(group), { reordered: 8, oneIn: 12 });
