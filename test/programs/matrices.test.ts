/** Programs of matrices and their products. */
import { testGroups } from "./run.ts";

testGroups((group) => /mma|matrices/.test(group) && !/sparse|products/.test(group), 16);
