/** Control flow and synchronisation: all cases, under two schedules. */
import { orderingCases } from "../matrix/ordering.ts";
import { sample } from "./sample.ts";

const cases = orderingCases();
const names = cases.map(({ name }) => name);

sample("first schedule", cases, names);
sample("second schedule", cases, names, { seed: 7 });
