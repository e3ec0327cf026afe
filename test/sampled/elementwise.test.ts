/** Functions and casts of tiles, one of each way that they are computed. */
import { elementwiseCases } from "../matrix/elementwise.ts";
import { sampledNames } from "./names.ts";
import { sample } from "./sample.ts";

const cases = elementwiseCases();

sample("functions", cases, sampledNames["functions"]);

sample("casts", cases, sampledNames["casts"]);

sample("what takes no input", cases, sampledNames["what takes no input"]);
