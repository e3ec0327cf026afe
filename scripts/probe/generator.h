// Inputs of the dot products that the probe measures; 32-bit integer arithmetic only, so that any
// language can make them again.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>
using u32 = uint32_t;
using u64 = uint64_t;

struct Format { const char* name; int bytes, exponentBits, mantissaBits, low; bool infinity; };
// `low`: bits below the mantissa that a register has and the format has not.
static const Format F16{"f16", 2, 5, 10, 0, true}, BF16{"bf16", 2, 8, 7, 0, true}, TF32{"tf32", 4, 8, 10, 13, true},
    E4M3{"e4m3", 1, 4, 3, 0, false}, E5M2{"e5m2", 1, 5, 2, 0, true}, F32{"f32", 4, 8, 23, 0, true};

inline int bias(const Format& f) { return (1 << (f.exponentBits - 1)) - 1; }
inline int topExponent(const Format& f) { return (1 << f.exponentBits) - 1 - (f.infinity ? 1 : 0); }
inline u32 assemble(const Format& f, u32 sign, int exponent, u32 mantissa) {
  if (exponent < 0) exponent = 0;
  if (exponent > topExponent(f)) exponent = topExponent(f);
  mantissa &= (1u << f.mantissaBits) - 1;
  if (!f.infinity && exponent == topExponent(f) && mantissa == (1u << f.mantissaBits) - 1) mantissa--;
  return ((sign & 1) << (f.exponentBits + f.mantissaBits) | u32(exponent) << f.mantissaBits | mantissa) << f.low;
}
inline u32 widthMask(const Format& f) { return f.bytes == 4 ? 0xffffffffu : (1u << (8 * f.bytes)) - 1; }

struct Stream {
  u32 state;
  explicit Stream(u32 seed) : state(mix(seed)) {}
  static u32 mix(u32 x) { x ^= x >> 16; x *= 0x85ebca6bu; x ^= x >> 13; x *= 0xc2b2ae35u; return x ^ x >> 16; }
  u32 bits() { state += 0x9e3779b9u; return mix(state); }
  u32 below(u32 limit) { return (bits() >> 8) % limit; }
};

struct Dot { uint8_t a[32], b[32]; u32 c; };
inline void put(uint8_t* at, const Format& f, int k, u32 bits) { memcpy(at + k * f.bytes, &bits, f.bytes); }
inline u32 get(const uint8_t* at, const Format& f, int k) { u32 bits = 0; memcpy(&bits, at + k * f.bytes, f.bytes); return bits; }

// Dot product `index` of a type: A in fa, B in fb, C in fc, 32 bytes of k.
inline Dot randomDot(u32 index, const Format& fa, const Format& fb, const Format& fc) {
  Dot dot; memset(&dot, 0, sizeof dot);
  Stream s(index * 0x9e3779b1u + 0x51ed27u);
  const int K = 32 / fa.bytes, mode = index & 15;
  const int widths[16] = {0, 1, 4, 8, 16, 256, 6, 6, 8, 12, 4, 16, 4, 6, 6, 4};
  const int width = widths[mode];
  auto start = [&](const Format& f) -> int {
    if (mode == 5) return 0;
    if (mode == 10) return 0;
    if (mode == 15) return topExponent(f) - 3;
    return bias(f) - width / 2 + int(s.below(9)) - 4;
  };
  const int startA = start(fa), startB = start(fb);
  auto element = [&](const Format& f, int from) -> u32 {
    u32 word = s.bits();
    if (mode == 0) return word & widthMask(f);
    int span = width > topExponent(f) + 1 ? topExponent(f) + 1 : width;
    int exponent = from + int((word >> 4 & 0xffff) % u32(span));
    u32 mantissa = s.bits() >> 3;
    if (mode == 11) mantissa = 0;
    if (mode == 12) mantissa = ~0u;
    if (mode == 9 && word >> 28 >= 4) return (word & 1) << (f.exponentBits + f.mantissaBits) << f.low;
    if (mode == 15 && word >> 27 == 0) return ((word & 1) << (f.exponentBits + f.mantissaBits) | u32(((1 << f.exponentBits) - 1) << f.mantissaBits) | ((word & 8) ? mantissa & ((1u << f.mantissaBits) - 1) : 0)) << f.low;
    return assemble(f, word & 1, exponent, mantissa) | ((word >> 3 & 1) && f.low ? mantissa >> 12 & ((1u << f.low) - 1) : 0);
  };
  for (int k = 0; k < K; k++) { put(dot.a, fa, k, element(fa, startA)); put(dot.b, fb, k, element(fb, startB)); }
  const u32 signB = 1u << (8 * fb.bytes - 1);
  if (mode == 6 || mode == 7) {
    const int apart = mode == 6 ? 1 : K / 2;
    for (int k = 0; k < K; k++) {
      if (k / apart % 2 == 0) continue;
      u32 word = s.bits();
      put(dot.a, fa, k, get(dot.a, fa, k - apart));
      put(dot.b, fb, k, (get(dot.b, fb, k - apart) ^ signB) ^ (word % 4 == 0 ? (1u << fb.low) : 0));
    }
  }
  // The accumulator's exponent is that of a typical product, moved.
  u32 word = s.bits();
  if (mode == 0) { dot.c = word & widthMask(fc); return dot; }
  int exponent = startA - bias(fa) + startB - bias(fb) + bias(fc) + int(word >> 8 & 0xff) % (2 * width < 24 ? 2 * width : 24);
  if (mode == 5) exponent = int(word >> 8 & 0xff);
  if (mode == 13) exponent += 8 + int(word >> 16 & 0xff) % 19;
  if (mode == 14) exponent -= 8 + int(word >> 16 & 0xff) % 19;
  u32 sign = word & 1, mantissa = s.bits() >> 3;
  if (mode == 8) {
    u32 a = get(dot.a, fa, 0), b = get(dot.b, fb, 0);
    exponent = int(a >> (fa.mantissaBits + fa.low) & ((1u << fa.exponentBits) - 1)) - bias(fa) +
               int(b >> (fb.mantissaBits + fb.low) & ((1u << fb.exponentBits) - 1)) - bias(fb) + bias(fc) + int(word >> 4 & 1);
    sign = (a >> (8 * fa.bytes - 1) ^ b >> (8 * fb.bytes - 1) ^ 1) & 1;
  }
  if (word >> 29 == 0) { dot.c = 0; return dot; }
  if (mode == 11) mantissa = 0;
  dot.c = assemble(fc, sign, exponent, mantissa);
  return dot;
}

// ---- Targeted dot products: sums of few powers of two (or simple numbers) at chosen positions.
inline u32 power(const Format& f, int exponent, u32 sign = 0, u32 mantissa = 0) {
  int field = exponent + bias(f);
  if (field >= 1) return assemble(f, sign, field, mantissa);
  return assemble(f, sign, 0, (1u << f.mantissaBits) >> (1 - field) & ((1u << f.mantissaBits) - 1));
}
inline std::vector<Dot> targetedDots(const Format& fa, const Format& fb, const Format& fc) {
  std::vector<Dot> all;
  const int K = 32 / fa.bytes;
  Dot dot;
  auto clear = [&] { memset(&dot, 0, sizeof dot); };
  // The product 2^(ea+eb), the exponents shared out as evenly as the formats allow.
  auto product = [&](int k, int exponent, u32 sign) {
    int lowest = 1 - bias(fa) - fa.mantissaBits;
    int highest = (1 << (fa.exponentBits - 1)) - 1;
    int ea = exponent >= 0 ? (exponent + 1) / 2 : -((-exponent) / 2);
    if (ea > highest) ea = highest;
    if (ea < lowest) ea = lowest;
    int eb = exponent - ea;
    put(dot.a, fa, k, power(fa, ea)); put(dot.b, fb, k, power(fb, eb, sign));
  };
  auto done = [&] { all.push_back(dot); clear(); };
  clear();
  const int high = fa.exponentBits == 4 ? 14 : fa.exponentBits == 5 && fa.bytes == 1 ? 24 : fa.exponentBits == 5 ? 20 : 30;
  // 1. big, -big, small: at which distance is the small one lost? (c = 0)  44 of them
  for (int j = 0; j < 44; j++) { product(0, high, 0); product(1, high, 1); product(2, high - j < -18 ? -18 : high - j, 0); done(); }
  // 2. The same, the small one negative.
  for (int j = 0; j < 44; j++) { product(0, high, 0); product(1, high, 1); product(2, high - j < -18 ? -18 : high - j, 1); done(); }
  // 3. c = big, -big a product, small.
  for (int j = 0; j < 44; j++) { product(1, high, 1); product(2, high - j < -18 ? -18 : high - j, 0); dot.c = power(fc, high > 15 && fc.bytes == 2 ? 15 : high); done(); }
  // 4. big, -big products, c small.
  for (int j = 0; j < 44; j++) { product(0, high, 0); product(1, high, 1); dot.c = power(fc, high - j); done(); }
  // 5. Groups of k: big at i, -big at l, small at j, small far below big.
  const int gap = 32;
  for (int i = 0; i < K; i++) for (int l = 0; l < K; l++) for (int j = 0; j < K; j++) {
    if (i == l || i == j || l == j) continue;
    if (K == 32 && (i % 4 || l % 4 != 1 || j % 4 != 2)) continue;
    product(i, high, 0); product(l, high, 1); product(j, high - gap < -18 ? -18 : high - gap, 0); done();
  }
  // 6. c = big, -big at l, small at j.
  for (int l = 0; l < K; l++) for (int j = 0; j < K; j++) {
    if (l == j) continue;
    int top = fc.bytes == 2 && high > 15 ? 15 : high;
    product(l, top, 1); product(j, -18, 0); dot.c = power(fc, top); done();
  }
  // 7. Rounding of the result: 1 + m·2^-26 (+ signs), as c = ±1 and as a product ±1.
  for (int asProduct = 0; asProduct < 2; asProduct++) for (u32 s1 = 0; s1 < 2; s1++) for (u32 s2 = 0; s2 < 2; s2++)
    for (int m = 1; m < 64; m++) {
      if (asProduct) product(0, 0, s1); else dot.c = power(fc, 0, s1);
      for (int bit = 0; bit < 6; bit++) if (m >> bit & 1) product(1 + bit, (fc.bytes == 2 ? -13 : -26) + bit < -18 && fa.bytes == 1 && fa.exponentBits == 4 ? -18 + bit : (fc.bytes == 2 ? -13 : -26) + bit, s2);
      done();
    }
  // 8. Products of 1.5·1.5 and 1.75·1.75: is 2.25 aligned as 2^0 or 2^1?
  for (int odd = 0; odd < 2; odd++) for (int j = 0; j < 44; j++) {
    u32 mantissa = (odd ? 3u : 2u) << (fa.mantissaBits - 2), mantissaB = (odd ? 3u : 2u) << (fb.mantissaBits - 2);
    int e = high / 2;
    put(dot.a, fa, 0, power(fa, e, 0, mantissa)); put(dot.b, fb, 0, power(fb, e, 0, mantissaB));
    put(dot.a, fa, 1, power(fa, e, 0, mantissa)); put(dot.b, fb, 1, power(fb, e, 1, mantissaB));
    product(2, 2 * e - j < -18 ? -18 : 2 * e - j, 0); done();
  }
  // 9. Subnormal operands: (subnormal)·2^e beside smaller normal products, cancelled by its negative.
  for (int j = 0; j < 30; j++) {
    u32 one = 1u << fa.low;
    put(dot.a, fa, 0, one); put(dot.b, fb, 0, power(fb, 6)); put(dot.a, fa, 1, one); put(dot.b, fb, 1, power(fb, 6, 1));
    put(dot.a, fa, 2, power(fa, 1 - bias(fa))); put(dot.b, fb, 2, power(fb, 6 - j)); done();
    put(dot.a, fa, 0, one); put(dot.b, fb, 0, power(fb, 6)); dot.c = power(fc, 1 - bias(fa) - fa.mantissaBits + 6 + j); done();
    put(dot.a, fa, 0, 0); put(dot.b, fb, 0, power(fb, bias(fb))); dot.c = power(fc, bias(fb) - bias(fa) - j, 0, 1); done();
    put(dot.a, fa, 0, 0); put(dot.b, fb, 0, power(fb, bias(fb))); put(dot.a, fa, 1, power(fa, 0)); put(dot.b, fb, 1, power(fb, 2 - j < 1 - bias(fb) ? 1 - bias(fb) : 2 - j)); done();
  }
  // 10. c subnormal; product subnormal in f32; both.
  for (int j = 0; j < 24; j++) {
    dot.c = 1u << j; done();
    dot.c = (1u << j) - 1; done();
    dot.c = fc.bytes == 2 ? 0x400 - (j % 16) : 0x800000u - j; product(0, -18, 1); done();
    put(dot.a, fa, 0, power(fa, 1 - bias(fa))); put(dot.b, fb, 0, power(fb, -j)); done();
    put(dot.a, fa, 0, power(fa, 1 - bias(fa))); put(dot.b, fb, 0, power(fb, -j)); dot.c = 1u << (j % (fc.bytes == 2 ? 10 : 24)); done();
    put(dot.a, fa, 0, power(fa, 1 - bias(fa))); put(dot.b, fb, 0, power(fb, -j)); dot.c = fc.bytes == 2 ? 0x400 : 0x800000u; done();
    put(dot.a, fa, 0, power(fa, 1 - bias(fa), 0, 5)); put(dot.b, fb, 0, power(fb, -j, 1, 3)); done();
  }
  // 11. Overflow and specials.
  u32 maxA = assemble(fa, 0, topExponent(fa), ~0u), maxB = assemble(fb, 0, topExponent(fb), ~0u);
  u32 special[8], specialB[8];
  for (int side = 0; side < 2; side++) {
    const Format& f = side ? fb : fa; u32* list = side ? specialB : special;
    u32 infinity = u32(((1 << f.exponentBits) - 1) << f.mantissaBits) << f.low;
    u32 sign = 1u << (8 * f.bytes - 1);
    list[0] = 0; list[1] = sign; list[2] = infinity; list[3] = infinity | sign;
    list[4] = (infinity | (((1u << f.mantissaBits) - 1) << f.low)); list[5] = list[4] | sign; list[6] = power(f, 0); list[7] = infinity | 1u << f.low;
  }
  u32 cs[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  {
    u32 infinity = u32(((1 << fc.exponentBits) - 1) << fc.mantissaBits), sign = 1u << (8 * fc.bytes - 1);
    cs[1] = sign; cs[2] = infinity; cs[3] = infinity | sign; cs[4] = infinity | 5; cs[5] = infinity | sign | 9; cs[6] = infinity - 1; cs[7] = (infinity - 1) | sign;
  }
  for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) for (int c = 0; c < 8; c++) {
    put(dot.a, fa, 3, special[i]); put(dot.b, fb, 3, specialB[j]); dot.c = cs[c]; done();
  }
  for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) { put(dot.a, fa, 0, special[i]); put(dot.b, fb, 0, power(fb, 0)); put(dot.a, fa, K - 1, special[j]); put(dot.b, fb, K - 1, power(fb, 0)); done(); }
  for (int count = 1; count <= K; count++) {
    for (int k = 0; k < count; k++) { put(dot.a, fa, k, maxA); put(dot.b, fb, k, maxB); } done();
    for (int k = 0; k < count; k++) { put(dot.a, fa, k, maxA); put(dot.b, fb, k, maxB | (k & 1 ? 1u << (8 * fb.bytes - 1) : 0)); } dot.c = cs[6]; done();
    for (int k = 0; k < count; k++) { put(dot.a, fa, k, maxA); put(dot.b, fb, k, power(fb, 0)); } dot.c = cs[6]; done();
    for (int k = 0; k < count; k++) { put(dot.a, fa, k, power(fa, 0)); put(dot.b, fb, k, power(fb, (fc.bytes == 2 ? 4 : fa.exponentBits == 8 ? 103 : 0))); } dot.c = cs[6]; done();
  }
  // 12. Signs of zero.
  for (int bits = 0; bits < 16; bits++) {
    for (int k = 0; k < K; k++) { put(dot.a, fa, k, (bits & 1) ? 1u << (8 * fa.bytes - 1) : 0); put(dot.b, fb, k, (bits & 2) ? power(fb, 0, 1) : power(fb, 0)); }
    dot.c = bits & 4 ? 1u << (8 * fc.bytes - 1) : 0; if (bits & 8) { product(0, 0, 0); product(1, 0, 1); } done();
  }
  return all;
}

struct Dot64 { u64 a[16], b[16], c; };
inline Dot64 randomDot64(u32 index) {
  Dot64 dot; Stream s(index * 0x9e3779b1u + 0x64646464u);
  const int widths[8] = {0, 1, 4, 16, 60, 8, 8, 2046};
  const int mode = index & 7, width = widths[mode];
  auto element = [&](int centre) -> u64 {
    u64 high = s.bits(), low = s.bits();
    if (mode == 0) return high << 32 | low;
    int exponent = centre - width / 2 + int((s.bits() >> 8) % u32(width));
    if (mode == 6) low = 0, high &= 0xfff00000u;
    if (exponent < 0) exponent = 0;
    if (exponent > 2046) exponent = 2046;
    return (high & 0x800fffffu) << 32 | u64(exponent) << 52 | low;
  };
  for (int k = 0; k < 16; k++) { dot.a[k] = element(1023); dot.b[k] = element(1023); }
  if (mode == 5) for (int k = 1; k < 16; k += 2) { dot.a[k] = dot.a[k - 1]; dot.b[k] = dot.b[k - 1] ^ (1ull << 63) ^ (s.bits() & 1); }
  dot.c = element(1023);
  return dot;
}
