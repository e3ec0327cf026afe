/** One emission rule for every op kind. */
import { integer as unused } from "../operands.ts";
void unused;
