/** Programs of matrices and their products. */
import { testGroups } from "./run.ts";

testGroups((group) => /mma|matrices/.test(group) && !/sparse|products/.test(group), {
  reordered: 8,
  oneIn: 10,
});
