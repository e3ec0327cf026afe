import { collectiveKernels } from "./collective.ts";
import { definePlantedTests } from "./suite.ts";

definePlantedTests(collectiveKernels);
