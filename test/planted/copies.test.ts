import { copyKernels } from "./copies.ts";
import { definePlantedTests } from "./suite.ts";

definePlantedTests(copyKernels);
