/**
 * What PTX has for sm_90a, root by root, as its manual and assembler tell; written apart from the programs,
 * so that either shows what the other forgets. Alternatives stand in braces (`expand.ts`).
 *
 * `forms` lists opcodes that programs must use, every one. `refused` has instructions that the emulator does
 * not know; once it does, programs must use them.
 */

const integers = "{u16,s16,u32,s32,u64,s64}";
const halves = "{f16,f16x2,bf16,bf16x2}";
const rounding = "{,.rn,.rz,.rm,.rp}";
const rounded = ".{rn,rz,rm,rp}";
const compare = "{eq,ne,lt,le,gt,ge}";
const compareUnsigned = "{eq,ne,lt,le,gt,ge,lo,ls,hi,hs}";
const compareFloats = "{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}";
const bool = "{,.and,.or,.xor}";
const words = "{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}";

const arithmetic = [
  `{add,sub}.${integers}`,
  "{add,sub}.sat.s32",
  "add.{u16x2,s16x2}",
  "{add,sub}.cc.{u32,s32,u64,s64}",
  "{addc,subc}{,.cc}.{u32,s32,u64,s64}",
  `{mul,mad}.{lo,hi}.${integers}`,
  "{mul,mad}.wide.{u16,s16,u32,s32}",
  "mad.hi.sat.s32",
  "mad.{lo,hi}.cc.{u32,s32,u64,s64}",
  "madc.{lo,hi}{,.cc}.{u32,s32,u64,s64}",
  "{mul24,mad24}.{lo,hi}.{u32,s32}",
  "mad24.hi.sat.s32",
  `{sad,div,rem,min,max}.${integers}`,
  "{min,max}{.u16x2,.s16x2,.relu.s16x2,.relu.s32}",
  "{abs,neg}.{s16,s32,s64}",
  "dp4a.{u32,s32}.{u32,s32}",
  "dp2a.{lo,hi}.{u32,s32}.{u32,s32}",
  `{add,sub,mul}${rounding}{,.ftz}{,.sat}.f32`,
  `{add,sub,mul}${rounding}.f64`,
  `{fma,mad}${rounded}{,.ftz}{,.sat}.f32`,
  `{fma,mad}${rounded}.f64`,
  "{add,sub,mul}{,.rn}{,.ftz}{,.sat}.{f16,f16x2}",
  "{add,sub,mul}{,.rn}.{bf16,bf16x2}",
  "fma.rn{,.ftz}{,.sat,.relu}.{f16,f16x2}",
  "fma.rn{,.relu}.{bf16,bf16x2}",
  `fma.rn.oob{,.relu}.${halves}`,
  `div${rounded}{,.ftz}.f32`,
  "div.{approx,full}{,.ftz}.f32",
  `{div,rcp,sqrt}${rounded}.f64`,
  `{rcp,sqrt}${rounded}{,.ftz}.f32`,
  "{rcp,sqrt,rsqrt,sin,cos,lg2,ex2}.approx{,.ftz}.f32",
  "{rcp,rsqrt}.approx.ftz.f64",
  "rsqrt.approx.f64",
  `tanh.approx.{f32,f16,f16x2,bf16,bf16x2}`,
  "ex2.approx.{f16,f16x2}",
  "ex2.approx.ftz.{bf16,bf16x2}",
  "{abs,neg}{,.ftz}.{f32,f16,f16x2}",
  "{abs,neg}.{f64,bf16,bf16x2}",
  "{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.{f32,f16,f16x2}",
  "{min,max}{,.NaN}{,.xorsign.abs}.{bf16,bf16x2}",
  "{min,max}.f64",
  "copysign.{f32,f64}",
  "testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64}",
];

const bits = [
  "{and,or,xor,not}.{pred,b16,b32,b64}",
  "cnot.{b16,b32,b64}",
  "shl.{b16,b32,b64}",
  "shr.{b16,b32,b64,u16,u32,u64,s16,s32,s64}",
  "shf.{l,r}.{clamp,wrap}.b32",
  "lop3{,.and,.or}.b32",
  "prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}",
  "bfe.{u32,s32,u64,s64}",
  "bfi.{b32,b64}",
  "bfind{,.shiftamt}.{u32,s32,u64,s64}",
  "{popc,clz,brev}.{b32,b64}",
  "fns.b32",
  "szext.{clamp,wrap}.{u32,s32}",
  "bmsk.{clamp,wrap}.b32",
];

const word = "{u32,s32}";

const video = [
  `{vadd,vsub,vabsdiff,vmin,vmax}.${word}.${word}.${word}{,.sat}{,.add,.min,.max}`,
  `{vshl,vshr}.${word}.${word}.u32{,.sat}.{clamp,wrap}{,.add,.min,.max}`,
  `vmad.${word}.${word}.${word}{,.po}{,.sat}{,.shr7,.shr15}`,
  `vset.${word}.${word}.${compare}{,.add,.min,.max}`,
  `v{add,sub,avrg,absdiff,min,max}{2,4}.${word}.${word}.${word}{,.sat,.add}`,
  `vset{2,4}.${word}.${word}.${compare}{,.add}`,
];

const comparing = [
  `setp.{eq,ne}${bool}.{b16,b32,b64}`,
  `setp.${compareUnsigned}${bool}.{u16,u32,u64}`,
  `setp.${compare}${bool}.{s16,s32,s64}`,
  `setp.${compareFloats}${bool}{,.ftz}.{f32,f16,f16x2}`,
  `setp.${compareFloats}${bool}.{f64,bf16,bf16x2}`,
  `set.{eq,ne}${bool}.{u32,f32}.{b16,b32,b64}`,
  `set.${compareUnsigned}${bool}.{u32,f32}.{u16,u32,u64}`,
  `set.${compare}${bool}.{u32,f32}.{s16,s32,s64}`,
  `set.${compareFloats}${bool}{,.ftz}.{u32,f32}.f32`,
  `set.${compareFloats}${bool}.{u32,f32}.f64`,
  "set.{eq,ne}.s32.{b16,b32,b64}",
  `set.${compareUnsigned}.s32.{u16,u32,u64}`,
  `set.${compare}.s32.{s16,s32,s64}`,
  `set.${compareFloats}{,.ftz}.s32.f32`,
  `set.${compareFloats}.s32.f64`,
  `set.${compareFloats}${bool}{,.ftz}.{f16,u16,s16,u32,s32}.f16`,
  `set.${compareFloats}${bool}.{bf16,u16,s16,u32,s32}.bf16`,
  `set.${compareFloats}${bool}{,.ftz}.f16x2.f16x2`,
  `set.${compareFloats}${bool}.bf16x2.bf16x2`,
  `selp.${words}`,
  `slct.${words}.s32`,
  `slct{,.ftz}.${words}.f32`,
  `mov.${words}`,
  "mov.{pred,b128}",
];

const small = "{u8,s8,u16,s16,u32,s32,u64,s64}";

const converting = [
  `cvt.${small}.${small}`,
  "cvt.sat.{u8,s8}.{u16,s16,u32,s32,u64,s64}",
  "cvt.sat.{u16,s16}.{u32,s32,u64,s64}",
  "cvt.sat.{u32,s32}.{u64,s64}",
  "cvt.sat.{u8,u16,u32,u64}.s8",
  "cvt.sat.{u16,u32,u64}.s16",
  "cvt.sat.{u32,u64}.s32",
  "cvt.sat.{u64.s64,s8.u8,s16.u16,s32.u32,s64.u64}",
  `cvt.{rni,rzi,rmi,rpi}{,.sat}.${small}.{f16,f64}`,
  `cvt.{rni,rzi,rmi,rpi}{,.ftz}{,.sat}.${small}.f32`,
  "cvt.{rni,rzi,rmi,rpi}.{u16,s16,u32,s32,u64,s64}.bf16",
  `cvt${rounded}{,.sat}.{f16,f32,f64}.${small}`,
  `cvt${rounded}.bf16.{u16,s16,u32,s32,u64,s64}`,
  "cvt.{rni,rzi,rmi,rpi}{,.sat}.f16.f16",
  "cvt.sat.f16.f16",
  "cvt.{rni,rzi,rmi,rpi}.bf16.bf16",
  "cvt{,.rni,.rzi,.rmi,.rpi}{,.ftz}{,.sat}.f32.f32",
  "cvt{,.rni,.rzi,.rmi,.rpi}{,.sat}.f64.f64",
  `cvt${rounded}{,.ftz}{,.sat}.{f32.f64,f16.f32}`,
  "cvt{,.ftz}{,.sat}.{f64.f32,f32.f16}",
  "cvt.{rn,rz}{,.relu}{,.satfinite}.{f16,bf16,f16x2,bf16x2}.f32",
  `cvt${rounded}{,.sat}.f16.f64`,
  `cvt${rounded}.{bf16.f32,bf16.f64,bf16.f16,f16.bf16}`,
  "cvt{,.sat}.f64.f16",
  "cvt{,.ftz}.f32.bf16",
  "cvt.f64.bf16",
  "cvt.rna{,.satfinite}.tf32.f32",
  "cvt.{rn,rz}{,.relu}.tf32.f32",
  "cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.{f32,f16x2}",
  "cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2}",
  "cvt.pack.sat.{u16,s16}.s32",
  "cvt.pack.sat.{u8,s8,u4,s4,u2,s2}.s32.b32",
];

const types = "{b8,u8,s8,b16,u16,s16,b32,u32,s32,f32,b64,u64,s64,f64}";
/** Types with the vectors of them that fit 16 bytes. */
const vectors = "{.v2,.v4,}.{b8,u8,s8,b16,u16,s16,b32,u32,s32,f32} {.v2,}.{b64,u64,s64,f64}".split(
  " ",
);
const scopes = "{cta,cluster,gpu,sys}";
const evictions = "L1::{evict_normal,evict_unchanged,evict_first,evict_last,no_allocate}";

const memory = [
  ...vectors.flatMap((end) => [
    `{ld,st}{,.global,.shared,.shared::cta,.shared::cluster,.local,.param}${end}`,
    `{ldu.global,ld.global.nc,ld.const}${end}`,
  ]),
  "{ld,st}{,.global,.shared,.shared::cta,.shared::cluster,.local}.b128",
  "{ld.global.nc,ld.const}.b128",
  `{ld,st}.param::func.${types}`,
  "ld.param::entry.u64",
  "cvta{,.to}.{global,shared,local,const,param}.u64",
  "isspacep.{global,shared,shared::cta,shared::cluster,local,const,param,param::entry}",
  "{mapa,getctarank}{,.shared::cluster}.u64",
  "{mapa,getctarank}.shared::cluster.u32",
  "prefetch{,.global,.local}.{L1,L2}",
  "prefetch.global.L2::{evict_last,evict_normal}",
  "prefetchu.L1",
  "prefetch{,.param,.const}.tensormap",
  "applypriority{,.global}.L2::evict_normal",
  "discard{,.global}.L2",
  "createpolicy.fractional.L2::{evict_last,evict_normal,evict_first,evict_unchanged}.b64",
  "createpolicy.fractional.L2::{evict_last,evict_normal}.L2::{evict_first,evict_unchanged}.b64",
  "createpolicy.range{,.global}.L2::{evict_last,evict_normal,evict_first,evict_unchanged}{,.L2::evict_first,.L2::evict_unchanged}.b64",
  "createpolicy.cvt.L2.b64",
  "pmevent{,.mask}",
];

/** Qualifiers change no value and do not depend on the type: five types stand for all. */
const few = "{b32,u8,v4.f32,v2.s64,b128}";

const qualified = [
  `ld{,.global}.{ca,cg,cs,lu,cv}.${few}`,
  `{ld,st}.{weak,volatile}{,.global}.${few}`,
  `ld.global.{ca,cg,cs}.nc.${few}`,
  `{ld,st}{,.global}.${evictions}.${few}`,
  `ld.global.nc.${evictions}.${few}`,
  `ld{,.global,.global.nc}.L2::{64B,128B,256B}.${few}`,
  `ld.global.${evictions}.L2::{64B,128B}.${few}`,
  `ld{,.global,.global.nc}{,.L2::128B}.L2::cache_hint.${few}`,
  `ld.{relaxed,acquire}.${scopes}{,.global}.${few}`,
  `st.{relaxed,release}.${scopes}{,.global}.${few}`,
  `{ld,st}.relaxed.gpu.global.${evictions}.${few}`,
  "{ld,st}.mmio.relaxed.sys{,.global}.{b32,u8}",
  `st{,.global}.{wb,cg,cs,wt}.${few}`,
  `st{,.global}.L2::cache_hint.${few}`,
  "{ld,st}.weak.shared.b32",
  "{ld,st}.volatile.{shared,shared::cta}.b32",
  `{ld,st}.relaxed.${scopes}.shared.b32`,
  `{ld.acquire,st.release}.${scopes}.{shared::cta,shared::cluster}.b32`,
];

const spaces = "{,.global,.shared,.shared::cta,.shared::cluster}";

const atomics = [
  `atom${spaces}.{and,or,xor,exch}.{b32,b64}`,
  `atom${spaces}.cas.{b16,b32,b64}`,
  `atom${spaces}.{exch,cas}.b128`,
  `{atom,red}${spaces}.add.{u32,s32,u64,f32,f64}`,
  `{atom,red}${spaces}.add.noftz.${halves}`,
  `{atom,red}${spaces}.{inc,dec}.u32`,
  `{atom,red}${spaces}.{min,max}.{u32,s32,u64,s64}`,
  `red${spaces}.{and,or,xor}.{b32,b64}`,
  `atom.{relaxed,acquire,release,acq_rel}.${scopes}{,.global,.shared}.{add.u32,cas.b64,min.s64,add.f32,exch.b32,cas.b128,exch.b128}`,
  `red.{relaxed,release}.${scopes}{,.global,.shared}.{add.u32,min.s64,add.f32}`,
  "{atom,red}{,.relaxed.gpu}.global.add.{v2,v4}.f32",
  "{atom,red}{,.relaxed.gpu}.global.{add,min,max}.noftz.{v2,v4,v8}.{f16,bf16}",
  "{atom,red}{,.relaxed.gpu}.global.{add,min,max}.noftz.{v2,v4}.{f16x2,bf16x2}",
];

const variants = [
  "{atom,red}{,.relaxed.gpu}.global.add.L2::cache_hint.{u32,f32}",
  "{atom,red}.global.add.L2::cache_hint.{s32,u64,f64}",
  `{atom,red}.global.add.noftz.L2::cache_hint.${halves}`,
  "{atom,red}.global.{min,max}.L2::cache_hint.{u32,s32,u64,s64}",
  "{atom,red}.global.{and,or,xor}.L2::cache_hint.{b32,b64}",
  "{atom,red}.global.{inc,dec}.L2::cache_hint.u32",
  "atom.global.exch.L2::cache_hint.{b32,b64}",
  "{atom,red}.global.add.L2::cache_hint.{v2,v4}.f32",
  "{atom,red}.global.add.noftz.L2::cache_hint.{{v2,v4,v8}.{f16,bf16},{v2,v4}.{f16x2,bf16x2}}",
  `ld.weak.global.{ca,cg,cs}.${few}`,
  `ld.global{,.nc}.${evictions}.{L2::256B,L2::cache_hint}.${few}`,
  `st.weak.global.{wb,cg,cs,wt}.${few}`,
  `st.global.${evictions}.L2::cache_hint.${few}`,
  ...vectors.map((end) => `ldu${end}`),
  "ldu{,.global}.b128",
  "cvta{,.to}.{shared::cta,shared::cluster,param::entry}.u64",
  `fence.{acquire,release}.${scopes}`,
  "membar.proxy.alias",
];

const warps = [
  "shfl.sync.{up,down,bfly,idx}.b32",
  "vote.sync.{all,any,uni}.pred",
  "vote.sync.ballot.b32",
  "match.{any,all}.sync.{b32,b64}",
  "redux.sync.{add,min,max}.{u32,s32}",
  "redux.sync.{and,or,xor}.b32",
  "elect.sync",
  "activemask.b32",
  "bar.warp.sync",
  "bar{,.cta}.{sync,arrive}",
  "bar{,.cta}.red.{popc.u32,and.pred,or.pred}",
  "barrier{,.cta}.{sync,arrive}{,.aligned}",
  "barrier{,.cta}.red.popc{,.aligned}.u32",
  "barrier{,.cta}.red.{and,or}{,.aligned}.pred",
  "barrier.cluster.arrive{,.release,.relaxed}{,.aligned}",
  "barrier.cluster.wait{,.acquire}{,.aligned}",
  "membar.{cta,gl,sys}",
  `fence{,.sc,.acq_rel}.${scopes}`,
  "fence.{acquire.sync_restrict::shared::cluster,release.sync_restrict::shared::cta}.cluster",
  "fence.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster}",
  `fence.proxy.tensormap::generic.{release,acquire}.${scopes}`,
  "fence.proxy.async::generic.{acquire.sync_restrict::shared::cluster,release.sync_restrict::shared::cta}.cluster",
  "fence.mbarrier_init.release.cluster",
  "griddepcontrol.{launch_dependents,wait}",
  "nanosleep.u32",
  "setmaxnreg.{inc,dec}.sync.aligned.u32",
];

const near = "{,.shared,.shared::cta}";
const release = "{,.release.cta,.release.cluster,.relaxed.cta,.relaxed.cluster}";

const mbarriers = [
  `mbarrier.{init,inval}${near}.b64`,
  `mbarrier.{arrive,arrive_drop}{,.expect_tx}${release}${near}.b64`,
  `mbarrier.{arrive,arrive_drop}.noComplete{,.release.cta}${near}.b64`,
  `mbarrier.arrive{,.release.cta,.release.cluster,.relaxed.cluster}.shared::cluster.b64`,
  `mbarrier.arrive.expect_tx{,.release.cluster,.relaxed.cluster}.shared::cluster.b64`,
  `mbarrier.{expect_tx,complete_tx}{,.relaxed.cta,.relaxed.cluster}{,.shared,.shared::cta,.shared::cluster}.b64`,
  `mbarrier.{test_wait,try_wait}{,.parity}{,.acquire.cta,.acquire.cluster,.relaxed.cta,.relaxed.cluster}${near}.b64`,
  "mbarrier.pending_count.b64",
];

const bulk = ".mbarrier::complete_tx::bytes";
const rank = "{1,2,3,4,5}d";
/** Of im2col copies. */
const images = "{3,4,5}d";

const copies = [
  "cp.async.{ca,cg}.{shared,shared::cta}.global{,.L2::cache_hint}{,.L2::64B,.L2::128B,.L2::256B}",
  "cp.async.{commit_group,wait_group,wait_all}",
  `cp.async.mbarrier.arrive{,.noinc}${near}.b64`,
  `cp.async.bulk.{shared::cluster,shared::cta}.global${bulk}{,.L2::cache_hint}`,
  `cp.async.bulk.shared::cluster.global${bulk}.multicast::cluster{,.L2::cache_hint}`,
  `cp.async.bulk.shared::cluster.shared::cta${bulk}`,
  "cp.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint}",
  `cp.reduce.async.bulk.shared::cluster.shared::cta${bulk}.{{and,or,xor}.b32,add.{u32,s32,u64},{inc,dec}.u32,{min,max}.{u32,s32}}`,
  "cp.reduce.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint}.{{and,or,xor}.{b32,b64},add.{u32,s32,u64,f32,f64},add.noftz.{f16,bf16},{inc,dec}.u32,{min,max}.{u32,s32,u64,s64,f16,bf16}}",
  "cp.async.bulk.prefetch.L2.global{,.L2::cache_hint}",
  "cp.async.bulk.commit_group",
  "cp.async.bulk.wait_group{,.read}",
  `cp.async.bulk.tensor.${rank}.{shared::cluster,shared::cta}.global{,.tile}${bulk}{,.L2::cache_hint}`,
  `cp.async.bulk.tensor.${rank}.shared::cluster.global${bulk}.multicast::cluster`,
  `cp.async.bulk.tensor.${rank}.shared::cluster.global.tile${bulk}.multicast::cluster.L2::cache_hint`,
  `cp.async.bulk.tensor.${rank}.global.shared::cta{,.tile}.bulk_group{,.L2::cache_hint}`,
  `cp.reduce.async.bulk.tensor.${rank}.global.shared::cta.{add,min,max,inc,dec,and,or,xor}.bulk_group`,
  "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{add,min,max,inc,dec,and,or,xor}{,.tile}.bulk_group{,.L2::cache_hint}",
  `cp.async.bulk.prefetch.tensor.${rank}.L2.global{,.tile}{,.L2::cache_hint}`,
  `cp.async.bulk.tensor.${images}.{shared::cluster,shared::cta}.global.im2col${bulk}{,.L2::cache_hint}`,
  `cp.async.bulk.tensor.${images}.shared::cluster.global.im2col${bulk}.multicast::cluster{,.L2::cache_hint}`,
  `cp.async.bulk.tensor.${images}.global.shared::cta.im2col_no_offs.bulk_group{,.L2::cache_hint}`,
  `cp.reduce.async.bulk.tensor.${images}.global.shared::cta.{add,min,max,inc,dec,and,or,xor}.im2col_no_offs.bulk_group{,.L2::cache_hint}`,
  `cp.async.bulk.prefetch.tensor.${images}.L2.global.im2col{,.L2::cache_hint}`,
  "tensormap.replace.tile.{global_address,global_stride}{,.global,.shared::cta}.b1024.b64",
  "tensormap.replace.tile.{rank,box_dim,global_dim,element_stride,elemtype,interleave_layout,swizzle_mode,fill_mode}{,.global,.shared::cta}.b1024.b32",
  `st.async{,.weak}{,.shared::cluster}${bulk}{,.v2,.v4}.{b32,u32,s32,f32}`,
  `st.async{,.weak}{,.shared::cluster}${bulk}{,.v2}.{b64,u64,s64,f64}`,
  `red.async.relaxed.cluster{,.shared::cluster}${bulk}.{add.{u32,s32,u64},{min,max}.{u32,s32},{inc,dec}.u32,{and,or,xor}.b32}`,
  `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.${scopes}.sync.aligned`,
];

const anyColumns = `{${Array.from({ length: 32 }, (_, at) => 8 * (at + 1)).join(",")}}`;
const fewColumns = `{8,24,${Array.from({ length: 16 }, (_, at) => 16 * (at + 1)).join(",")}}`;

const wmmaSpaces = "{,.global,.shared,.shared::cta}";

const matrices = [
  "{ldmatrix,stmatrix}.sync.aligned.m8n8.{x1,x2,x4}{,.trans}{,.shared,.shared::cta}.b16",
  "movmatrix.sync.aligned.m8n8.trans.b16",
  "mma.sync.aligned.{m16n8k8,m16n8k16}.row.col.{f32.f16.f16.f32,f16.f16.f16.f16,f32.bf16.bf16.f32}",
  "mma.sync.aligned.{m16n8k4,m16n8k8}.row.col.f32.tf32.tf32.f32",
  "mma.sync.aligned.{m16n8k16,m16n8k32}.row.col.{f32.{e4m3,e5m2}.{e4m3,e5m2}.f32,f16.{e4m3,e5m2}.{e4m3,e5m2}.f16}",
  "mma.sync.aligned.{m8n8k16,m16n8k16,m16n8k32}.row.col{,.satfinite}.s32.{s8,u8}.{s8,u8}.s32",
  "mma.sync.aligned.{m8n8k32,m16n8k32,m16n8k64}.row.col{,.satfinite}.s32.{s4,u4}.{s4,u4}.s32",
  "mma.sync.aligned.{m8n8k128,m16n8k128,m16n8k256}.row.col.s32.b1.b1.s32.{and,xor}.popc",
  "mma.sync.aligned.{m8n8k4,m16n8k4,m16n8k8,m16n8k16}.row.col{,.rn,.rz,.rm,.rp}.f64.f64.f64.f64",
  "mma.sync.aligned.m8n8k4.{row,col}.{row,col}.{f16.f16.f16.f16,f32.f16.f16.f16,f32.f16.f16.f32}",
  "mma.{sp,sp::ordered_metadata}.sync.aligned.{m16n8k16,m16n8k32}.row.col.{f32.f16.f16.f32,f16.f16.f16.f16,f32.bf16.bf16.f32}",
  "mma.{sp,sp::ordered_metadata}.sync.aligned.{m16n8k8,m16n8k16}.row.col.f32.tf32.tf32.f32",
  "mma.{sp,sp::ordered_metadata}.sync.aligned.m16n8k64.row.col.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32",
  "mma.{sp,sp::ordered_metadata}.sync.aligned.{m16n8k32,m16n8k64}.row.col{,.satfinite}.s32.{s8,u8}.{s8,u8}.s32",
  "mma.{sp,sp::ordered_metadata}.sync.aligned.{m16n8k64,m16n8k128}.row.col{,.satfinite}.s32.{s4,u4}.{s4,u4}.s32",
  `wmma.load.{a,b}.sync.aligned.{row,col}.{m16n16k16,m8n32k16,m32n8k16}${wmmaSpaces}.{f16,bf16,s8,u8}`,
  `wmma.load.{a,b}.sync.aligned.{row,col}.m16n16k8${wmmaSpaces}.tf32`,
  `wmma.load.{a,b}.sync.aligned.{row,col}.m8n8k4${wmmaSpaces}.f64`,
  `wmma.load.{a.sync.aligned.row,b.sync.aligned.col}.{m8n8k32${wmmaSpaces}.{s4,u4},m8n8k128${wmmaSpaces}.b1}`,
  `wmma.{load.c,store.d}.sync.aligned.{row,col}.{m16n16k16,m8n32k16,m32n8k16}${wmmaSpaces}.{f16,f32,s32}`,
  `wmma.{load.c,store.d}.sync.aligned.{row,col}.{m16n16k8${wmmaSpaces}.f32,m8n8k4${wmmaSpaces}.f64}`,
  `wmma.{load.c,store.d}.sync.aligned.{row,col}.{m8n8k32,m8n8k128}${wmmaSpaces}.s32`,
  "wmma.mma.sync.aligned.{row,col}.{row,col}.{m16n16k16,m8n32k16,m32n8k16}.{{f16,f32}.{f16,f32},f32.bf16.bf16.f32,s32.{s8.s8,u8.u8}.s32{,.satfinite}}",
  "wmma.mma.sync.aligned.{row,col}.{row,col}.m16n16k8.f32.tf32.tf32.f32",
  "wmma.mma.sync.aligned.{row,col}.{row,col}.m8n8k4{,.rn,.rz,.rm,.rp}.f64.f64.f64.f64",
  "wmma.mma.sync.aligned.row.col.m8n8k32.s32.{s4.s4,u4.u4}.s32{,.satfinite}",
  "wmma.mma.{and,xor}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",
  "wgmma.{fence,commit_group,wait_group}.sync.aligned",
  `wgmma.mma_async.sync.aligned.m64n${anyColumns}k16.{f32.f16.f16,f16.f16.f16,f32.bf16.bf16}`,
  `wgmma.mma_async.sync.aligned.m64n${anyColumns}k8.f32.tf32.tf32`,
  `wgmma.mma_async.sync.aligned.m64n${anyColumns}k32.{f32,f16}.{e4m3,e5m2}.{e4m3,e5m2}`,
  `wgmma.mma_async.sync.aligned.m64n${fewColumns}k32.s32.{s8,u8}.{s8,u8}{,.satfinite}`,
  `wgmma.mma_async.sync.aligned.m64n${fewColumns}k256.s32.b1.b1.and.popc`,
  `wgmma.mma_async.sp.sync.aligned.m64n${anyColumns}k32.{f32.f16.f16,f16.f16.f16,f32.bf16.bf16}`,
  `wgmma.mma_async.sp.sync.aligned.m64n${anyColumns}k16.f32.tf32.tf32`,
  `wgmma.mma_async.sp.sync.aligned.m64n${anyColumns}k64.{f32,f16}.{e4m3,e5m2}.{e4m3,e5m2}`,
  `wgmma.mma_async.sp.sync.aligned.m64n${fewColumns}k64.s32.{s8,u8}.{s8,u8}{,.satfinite}`,
];

const stack = ["alloca.u64", "{stacksave,stackrestore}.u64"];

const control = ["bra{,.uni}", "brx.idx{,.uni}", "call{,.uni}", "ret{,.uni}", "exit"];

/** Every one of them. */
export const forms: readonly string[] = [
  ...arithmetic,
  ...bits,
  ...video,
  ...comparing,
  ...converting,
  ...memory,
  ...qualified,
  ...atomics,
  ...variants,
  ...warps,
  ...mbarriers,
  ...copies,
  ...matrices,
  ...control,
  ...stack,
];

/** Instructions that the emulator knows and that no program can use: they end the launch. */
export const ending: readonly string[] = ["trap", "brkpt"];

/** Instructions that sm_90a does not have: test/tensor-memory-forms.test.ts and src/emulator/copies run them. */
export const blackwell: readonly string[] = ["clusterlaunchcontrol", "tcgen05"];

/** PTX for sm_90a that the emulator does not run. */
export const refused: readonly string[] = [
  "multimem.ld_reduce.global.add.u32 %r0, [%d0];",
  "multimem.st.global.u32 [%d0], %r0;",
  "multimem.red.global.add.u32 [%d0], %r0;",
  "tex.1d.v4.f32.s32 {%r0,%r1,%r2,%r3}, [%d0, {%r4}];",
];
