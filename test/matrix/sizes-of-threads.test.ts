import { emulateCases } from "./emulated.ts";
import { sizesOfThreadsCases } from "./sizes-of-threads.ts";

emulateCases(sizesOfThreadsCases());
