/** Codes of ranks, collectives, meshes and sharded programs: TW97xx. */
import { registerCodes } from "./entry.ts";

export const rankCodes = registerCodes({
  TW9701: {
    title: "ranks at different calls",
    cause:
      "Two ranks of a group are at calls that do not belong together: other collectives, another order, other types or sizes, or other programs. Neither would ever end.",
    example: "if (rank === 0) await ranks.allReduce(x); // the others never come",
    remedy:
      "let every rank of a group make the same calls in the same order, at the lines that the report names",
  },
  TW9702: {
    title: "collective that waited too long",
    cause:
      "A rank has waited for others until its time was over. The report says where each rank is, and which of them do not answer.",
    example: "initialize({ timeout: 10_000 }); // and one rank loads data for a minute first",
    remedy: "look at the ranks that have not come, or give the calls more time with timeout",
  },
  TW9703: {
    title: "rank that has ended or failed",
    cause:
      "A rank died, was killed, threw an error or ended while others were waiting for it, so that all have to stop.",
    example: "process.exit(1); // in one rank, while the others are in an all-reduce",
    remedy: "look at the first error of the rank that the report names",
  },
  TW9704: {
    title: "rank used after it was closed",
    cause: "A collective was called on ranks that were closed before.",
    example: "ranks.close(); await ranks.allReduce(x);",
    remedy: "close ranks after their last call",
  },
  TW9705: {
    title: "collective that does not fit its arguments",
    cause:
      "An axis cannot be cut for the ranks of the group, an element has no such reduction, a rank is listed twice or does not exist, or the result overlaps the operand in a way that not all back ends can do.",
    example: "await ranks.reduceScatter(x, { axis: 0 }); // of 10 rows for 4 ranks",
    remedy: "change the argument that the report names",
  },
  TW9706: {
    title: "program for another number of ranks",
    cause:
      "A program whose ranks meet at collectives says how many they are, and it is run on fewer or more.",
    example: "tilewright run step.mlir --device cpu # of a program with mhlo.num_partitions = 8",
    remedy: "run it on as many ranks as it says, such as tilewright run step.mlir --ranks 8",
  },
  TW9707: {
    title: "sharding that would have to be propagated",
    cause:
      "An op outside of shardMap works on an array that is cut over a mesh. Which part of its result each rank should compute follows from the op, and nothing finds that out yet.",
    example: "%0 = stablehlo.dot_general %x, %w … // of a program whose %x is sharded",
    remedy:
      "put the op within shardMap (sdy.manual_computation), where each rank works on its part",
  },
  TW9708: {
    title: "sharding that does not fit",
    cause:
      "A sharding names an axis that its mesh does not have, or names one twice, has more entries than the array has axes, or would cut an axis unevenly.",
    example: 'new NamedSharding(mesh, P("rows")) // of a mesh { x: 2, y: 4 }',
    remedy: "name axes of the mesh, each once, whose sizes divide the extent",
  },
  TW9711: {
    title: "processes that do not find each other",
    cause:
      "initialize lacks the number of processes, of this one, or the address of rank 0, is called twice, or the others do not come in time.",
    example: "await initialize(); // in a process that no launcher started",
    remedy:
      "start the program with tilewright launch -n 4 FILE or torchrun, or give initialize what the report names",
  },
  TW9710: {
    title: "array that other processes have",
    cause:
      "An array is cut over the ranks of several processes, and one of them asks for all of it.",
    example: 'await x.values() // of P("d"), in one of four processes',
    remedy: "gather it first, with allGather in shardMap or an outSpec of P()",
  },
  TW9709: {
    title: "collective of an axis that is not mapped",
    cause:
      "psum and its like name an axis of the mesh of the shardMap around them, and are called outside of one or with another name; or the pairs of ppermute are no permutation.",
    example: 'psum(x, "rows") // in shardMap over a mesh { x: 2, y: 4 }',
    remedy: "name an axis of the mesh within shardMap, each rank once as a source and as a target",
  },
});
