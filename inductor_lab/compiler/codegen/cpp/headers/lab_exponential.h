// exp, log, and functions that use them.

//@ lab_fused
// a * b + c with one rounding if the CPU has such an instruction, otherwise with two.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
static inline float lab_fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double lab_fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
static inline float lab_fused(float a, float b, float c) { return a * b + c; }
static inline double lab_fused(double a, double b, double c) { return a * b + c; }
#endif

//@ lab_reduced_exp lab_power_of_two lab_exp_of lab_exp_factor
// exp(x) = 2**n * exp(r), where n is x / ln 2 rounded to an integer, by adding a number so large that
// no fraction fits.  The last nine bits of `biased` are n + 254.  For x >= 104, n stays the same, and
// r grows, so exp(r) overflows.  The limit is applied to integers: GCC duplicates code for chains of
// selections of floats.
struct lab_reduced_exp { float r; uint32_t biased; };
static inline lab_reduced_exp lab_exp_of(float x) {
    int32_t bits = lab_bitcast<int32_t>(lab_fused(x, 1.44269504f, 12583166.0f));
    bits = bits < 0x4b400194 ? bits : 0x4b400194;
    float n = lab_bitcast<float>(bits) - 12583166.0f;
    float r = lab_fused(n, -1.42860677e-6f, lab_fused(n, -0.693145752f, x));
    return lab_reduced_exp{r, (uint32_t)bits};
}
// 2**(biased - 127)
static inline float lab_power_of_two(uint32_t biased) { return lab_bitcast<float>(biased << 23); }
static inline float lab_exp_factor(float r) {
    float q = lab_fused(1.3814804e-3f, r, 8.368773e-3f);
    q = lab_fused(q, r, 4.166839e-2f);
    q = lab_fused(q, r, 0.1666652f);
    q = lab_fused(q, r, 0.49999994f);
    return lab_fused(lab_fused(q, r, 1.0f), r, 1.0f);
}

//@ lab_exp
// If exp(x) underflows to 0, x is replaced by a number for which both factors are 0.  Otherwise the
// products would be subnormal, which costs a hundred cycles; masked softmax often computes exp(-inf).
template <class T> static inline T lab_exp(T x);
template <> inline float lab_exp<float>(float x) {
    lab_reduced_exp e = lab_exp_of(x < -104.0f ? -176.0f : x);
    // Two factors: 2**n may overflow or be subnormal although the result is not.
    uint32_t half = e.biased >> 1;
    return lab_exp_factor(e.r) * lab_power_of_two(half) * lab_power_of_two(e.biased - half);
}

//@ lab_exp2_slope
// (2**r - 1) / r for |r| <= 1/2
static inline float lab_exp2_slope(float r) {
    float q = lab_fused(1.5218767e-4f, r, 1.3391003e-3f);
    q = lab_fused(q, r, 9.618955e-3f);
    q = lab_fused(q, r, 5.5503596e-2f);
    q = lab_fused(q, r, 0.24022643f);
    return lab_fused(q, r, 0.6931472f);
}

//@ lab_exp2
template <class T> static inline T lab_exp2(T x);
template <> inline float lab_exp2<float>(float x) {
    x = x < -151.0f ? -254.0f : x;
    int32_t bits = lab_bitcast<int32_t>(x + 12583166.0f);
    bits = bits < 0x4b400180 ? bits : 0x4b400180;
    float r = x - (lab_bitcast<float>(bits) - 12583166.0f);
    uint32_t biased = (uint32_t)bits, half = biased >> 1;
    return lab_fused(lab_exp2_slope(r), r, 1.0f) * lab_power_of_two(half) * lab_power_of_two(biased - half);
}

//@ lab_expm1
template <class T> static inline T lab_expm1(T x);
template <> inline float lab_expm1<float>(float x) {
    lab_reduced_exp e = lab_exp_of(x < -104.0f ? -104.0f : x);
    float q = lab_fused(1.9912534e-4f, e.r, 1.3941135e-3f);
    q = lab_fused(q, e.r, 8.333276e-3f);
    q = lab_fused(q, e.r, 4.166635e-2f);
    q = lab_fused(q, e.r, 0.16666667f);
    q = lab_fused(q, e.r, 0.5f);
    float p = lab_fused(q, e.r * e.r, e.r);
    // (a * (1 + p) - 1 / b) * b with a * b = 2**n
    uint32_t half = e.biased >> 1, rest = e.biased - half;
    float a = lab_power_of_two(half), inverse = lab_power_of_two(254 - rest);
    float result = lab_fused(a, p, a - inverse) * lab_power_of_two(rest);
    return lab_copysign<float>(result, x);
}

//@ lab_sigmoid
// 1 / (1 + exp(-x)) with numerator and denominator times 2**-24, so that n may be up to 150.  For
// n < -100, exp(-x) is negligible.
template <class T> static inline T lab_sigmoid(T x) { return 1 / (1 + lab_exp<T>(-x)); }
template <> inline float lab_sigmoid<float>(float x) {
    lab_reduced_exp e = lab_exp_of(x > 64.0f ? -64.0f : -x);
    float scale = lab_power_of_two(e.biased - 151);
    return 5.9604645e-8f / lab_fused(lab_exp_factor(e.r), scale, 5.9604645e-8f);
}

//@ lab_tanh
// h / (h + 1) with 2 * h = exp(2 * |x|) - 1; 1 for |x| >= 10.  exp(2 * |x|) = 2**n * exp(2 * r), and
// exp(2 * r) = 1 + 2 * part.  The last bits of t are n + 127.
template <class T> static inline T lab_tanh(T x);
template <> inline float lab_tanh<float>(float x) {
    float a = lab_abs<float>(x), b = a > 10.0f ? 10.0f : a;
    float t = lab_fused(b, 2.88539008f, 12583039.0f);
    float r = lab_fused(t - 12583039.0f, -0.34657359f, b);
    float q = lab_fused(4.4386227e-2f, r, 0.13386035f);
    q = lab_fused(q, r, 0.33333948f);
    q = lab_fused(q, r, 0.66666186f);
    q = lab_fused(q, r, 0.99999994f);
    float part = lab_fused(q, r * r, r), scale = lab_power_of_two(lab_bitcast<uint32_t>(t));
    float h = lab_fused(scale, part, lab_fused(scale, 0.5f, -0.5f));
    return lab_copysign<float>(h / (h + 1.0f), x);
}

//@ lab_reduced_log lab_log_of lab_log_special
// x = 2**n * (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) = f + rest.
struct lab_reduced_log { float n, f, rest; };
static inline lab_reduced_log lab_log_of(float x) {
    bool subnormal = x < 1.17549435e-38f;
    x = subnormal ? x * 8388608.0f : x;
    uint32_t bits = lab_bitcast<uint32_t>(x) - 0x3f3504f3u;
    float n = (float)((int32_t)bits >> 23) - (subnormal ? 23.0f : 0.0f);
    float f = lab_bitcast<float>((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f, square = f * f;
    float q = lab_fused(6.920098e-2f, f, -0.11792018f);
    q = lab_fused(q, f, 0.11871911f);
    q = lab_fused(q, f, -0.12383852f);
    q = lab_fused(q, f, 0.14218743f);
    q = lab_fused(q, f, -0.16669284f);
    q = lab_fused(q, f, 0.20002224f);
    q = lab_fused(q, f, -0.24999987f);
    q = lab_fused(q, f, 0.3333331f);
    return lab_reduced_log{n, f, lab_fused(-0.5f, square, f * square * q)};
}
static inline float lab_log_special(float x, float result) {
    result = x <= 3.40282347e38f ? result : x;
    result = x < 0 ? lab_nanf : result;
    return x == 0 ? -lab_inff : result;
}

//@ lab_log
template <class T> static inline T lab_log(T x);
template <> inline float lab_log<float>(float x) {
    lab_reduced_log l = lab_log_of(x);
    float low = lab_fused(l.n, 1.42860677e-6f, l.rest);
    return lab_log_special(x, lab_fused(l.n, 0.693145752f, l.f + low));
}

//@ lab_log2
template <class T> static inline T lab_log2(T x);
template <> inline float lab_log2<float>(float x) {
    lab_reduced_log l = lab_log_of(x);
    float m = l.f + l.rest, low = (l.f - m) + l.rest;
    float scaled = lab_fused(m, 1.92596303e-8f, low * 1.44269504f);
    return lab_log_special(x, l.n + lab_fused(m, 1.44269502f, scaled));
}

//@ lab_log10
template <class T> static inline T lab_log10(T x);
template <> inline float lab_log10<float>(float x) {
    lab_reduced_log l = lab_log_of(x);
    float m = l.f + l.rest, low = l.n * 4.6050390e-6f;
    float mantissa = lab_fused(m, 0.434294492f, low);
    return lab_log_special(x, lab_fused(l.n, 0.301025391f, mantissa));
}

//@ lab_log1p
template <class T> static inline T lab_log1p(T x);
template <> inline float lab_log1p<float>(float x) {
    // 1 + x loses the low bits of the smaller operand; `lost / sum` corrects the logarithm.
    float sum = 1.0f + x, lost = x > 1.0f ? 1.0f - (sum - x) : x - (sum - 1.0f);
    lab_reduced_log l = lab_log_of(sum);
    float low = lab_fused(l.n, 1.42860677e-6f, l.rest + lost / sum);
    float result = lab_log_special(sum, lab_fused(l.n, 0.693145752f, l.f + low));
    return lab_copysign<float>(result, x);
}

//@ lab_half_exp
// exp(x) / 2 for x >= 0; overflows only where sinh and cosh do.
static inline float lab_half_exp(float x) {
    lab_reduced_exp e = lab_exp_of(x);
    uint32_t half = e.biased >> 1;
    return lab_exp_factor(e.r) * lab_power_of_two(half) * lab_power_of_two(e.biased - half - 1);
}

//@ lab_sinh
template <class T> static inline T lab_sinh(T x);
template <> inline float lab_sinh<float>(float x) {
    float a = lab_abs<float>(x), z = x * x, e = lab_half_exp(a);
    float q = lab_fused(2.8169513e-6f, z, 1.983616e-4f);
    q = lab_fused(lab_fused(q, z, 8.33335e-3f), z, 0.16666667f);
    return a < 1.0f || x != x ? lab_fused(q * z, x, x) : lab_copysign<float>(e - 0.25f / e, x);
}

//@ lab_cosh
template <class T> static inline T lab_cosh(T x);
template <> inline float lab_cosh<float>(float x) {
    float e = lab_half_exp(lab_abs<float>(x));
    return e + 0.25f / e;
}

//@ lab_asinh
template <class T> static inline T lab_asinh(T x);
template <> inline float lab_asinh<float>(float x) {
    float a = lab_abs<float>(x), b = a > 1.0e9f ? 1.0e9f : a, z = b * b;
    float small = lab_log1p<float>(b + z / (1.0f + lab_sqrt<float>(1.0f + z)));
    float large = lab_log<float>(a) + 0.69314718f;
    return lab_copysign<float>(a > 1.0e9f || x != x ? large : small, x);
}

//@ lab_acosh
template <class T> static inline T lab_acosh(T x);
template <> inline float lab_acosh<float>(float x) {
    float b = (x > 1.0e9f ? 1.0e9f : x) - 1.0f;
    float small = lab_log1p<float>(b + lab_sqrt<float>(lab_fused(b, b, 2.0f * b)));
    float result = x > 1.0e9f ? lab_log<float>(x) + 0.69314718f : small;
    return x < 1.0f ? lab_nanf : result;
}

//@ lab_atanh
template <class T> static inline T lab_atanh(T x);
template <> inline float lab_atanh<float>(float x) {
    float a = lab_abs<float>(x);
    return lab_copysign<float>(0.5f * lab_log1p<float>(2.0f * a / (1.0f - a)), x);
}

//@ lab_logaddexp
template <class T> static inline T lab_logaddexp(T a, T b) {
    T low = a < b ? a : b, high = a < b ? b : a;
    return high + lab_log1p(lab_exp(low == high ? (T)0 : low - high));
}
