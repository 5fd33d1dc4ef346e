// Scalar functions of inductor_lab's CPU kernels.  They are free of branches where it matters, so that
// compilers turn loops over them into vector code.  C++17; GCC, Clang, ICX, MSVC and clang-cl.
#include <stdint.h>
#if defined(_WIN32)
#define LAB_EXPORT __declspec(dllexport)
#else
#define LAB_EXPORT __attribute__((visibility("default")))
#endif

//@ lab_libm
#if defined(_MSC_VER) && !defined(__clang__)
#include <math.h>
#define lab_libm(name) ::name
#else
#define lab_libm(name) __builtin_##name
#endif

//@ lab_bitcast
#include <string.h>
template <class To, class From> static inline To lab_bitcast(From value) {
    To result;
    memcpy(&result, &value, sizeof(result));
    return result;
}

//@ lab_inf lab_inff lab_nan lab_nanf
#include <limits>
static const double lab_inf = std::numeric_limits<double>::infinity();
static const float lab_inff = std::numeric_limits<float>::infinity();
static const float lab_nanf = std::numeric_limits<float>::quiet_NaN();
template <class T> static inline T lab_nan() { return std::numeric_limits<T>::quiet_NaN(); }

//@ lab_lowest lab_highest
#include <limits>
template <class T> static inline T lab_lowest() {
    typedef std::numeric_limits<T> limits;
    return limits::has_infinity ? (T)-limits::infinity() : limits::lowest();
}
template <class T> static inline T lab_highest() {
    typedef std::numeric_limits<T> limits;
    return limits::has_infinity ? limits::infinity() : limits::max();
}

//@ lab_clamp_index lab_outside
// As wide as an index: GCC 12 gets the sum of narrower answers in a SIMD loop wrong.
static inline int64_t lab_outside(int64_t index, int64_t size) {
    return (uint64_t)index >= (uint64_t)size;
}
static inline int64_t lab_clamp_index(int64_t index, int64_t size) {
    return (uint64_t)index < (uint64_t)size ? index : 0;
}

//@ lab_maximum lab_minimum
template <class T> static inline T lab_maximum(T a, T b) { return (a > b) | (a != a) ? a : b; }
template <class T> static inline T lab_minimum(T a, T b) { return (a < b) | (a != a) ? a : b; }

//@ lab_argmax_beats lab_argmin_beats
template <class T> static inline bool lab_argmax_beats(T value, T best) {
    return value > best || (value != value && best == best);
}
template <class T> static inline bool lab_argmin_beats(T value, T best) {
    return value < best || (value != value && best == best);
}

//@ lab_half lab_bfloat16
// Enumerations, so that they are types of their own and yet plain numbers to the vectorizer.
enum class lab_half : uint16_t {};
enum class lab_bfloat16 : uint16_t {};

//@ lab_half_to_float lab_float_to_half
static inline float lab_half_to_float(lab_half h) {
    uint32_t bits = (uint32_t)h, sign = (bits & 0x8000u) << 16, rest = (bits & 0x7fffu) << 13;
    // 2**112 moves the exponent to float's; subnormals become normal in the product.
    float scaled = lab_bitcast<float>(rest) * 5.192296858534828e33f;
    uint32_t special = rest >= 0x0f800000u ? rest | 0x7f800000u : lab_bitcast<uint32_t>(scaled);
    return lab_bitcast<float>(sign | special);
}
static inline lab_half lab_float_to_half(float x) {
    uint32_t bits = lab_bitcast<uint32_t>(x), magnitude = bits & 0x7fffffffu;
    uint32_t capped = magnitude < 0x47800000u ? magnitude : 0x47800000u;
    uint32_t exponent = capped & 0x7f800000u;
    exponent = exponent > 0x38800000u ? exponent : 0x38800000u;
    // Adding 2**13 times its power of two rounds to half's ten bits and leaves them at the end.
    uint32_t large = exponent + 0x06800000u;
    float sum = lab_bitcast<float>(capped) + lab_bitcast<float>(large);
    uint32_t result = (exponent >> 13) - 0x1c400u + (lab_bitcast<uint32_t>(sum) - large);
    result = magnitude > 0x7f800000u ? 0x7e00u : result;
    return (lab_half)(uint16_t)(result | ((bits >> 16) & 0x8000u));
}

//@ lab_bfloat16_to_float lab_float_to_bfloat16
static inline float lab_bfloat16_to_float(lab_bfloat16 b) {
    return lab_bitcast<float>((uint32_t)b << 16);
}
static inline lab_bfloat16 lab_float_to_bfloat16(float x) {
    uint32_t bits = lab_bitcast<uint32_t>(x);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return (lab_bfloat16)(uint16_t)(x != x ? 0x7fc0u : rounded);
}

//@ lab_convert
template <class T> static inline T lab_widened(T x) { return x; }
static inline float lab_widened(lab_half x) { return lab_half_to_float(x); }
static inline float lab_widened(lab_bfloat16 x) { return lab_bfloat16_to_float(x); }
template <class To> struct lab_conversion {
    template <class From> static inline To of(From x) { return (To)x; }
};
// torch goes through int64 from a float to an unsigned byte, which wraps what is out of range.
template <> struct lab_conversion<uint8_t> {
    template <class From> static inline uint8_t of(From x) { return (uint8_t)(int64_t)x; }
};
template <> struct lab_conversion<lab_half> {
    template <class From> static inline lab_half of(From x) { return lab_float_to_half((float)x); }
};
template <> struct lab_conversion<lab_bfloat16> {
    template <class From> static inline lab_bfloat16 of(From x) {
        return lab_float_to_bfloat16((float)x);
    }
};
template <class To, class From> static inline To lab_convert(From x) {
    return lab_conversion<To>::of(lab_widened(x));
}

//@ lab_ceil
template <class T> static inline T lab_ceil(T x);
template <> inline float lab_ceil<float>(float x) { return lab_libm(ceilf)(x); }
template <> inline double lab_ceil<double>(double x) { return lab_libm(ceil)(x); }

//@ lab_floor
template <class T> static inline T lab_floor(T x);
template <> inline float lab_floor<float>(float x) { return lab_libm(floorf)(x); }
template <> inline double lab_floor<double>(double x) { return lab_libm(floor)(x); }

//@ lab_trunc
template <class T> static inline T lab_trunc(T x);
template <> inline float lab_trunc<float>(float x) { return lab_libm(truncf)(x); }
template <> inline double lab_trunc<double>(double x) { return lab_libm(trunc)(x); }

//@ lab_sqrt
template <class T> static inline T lab_sqrt(T x);
template <> inline float lab_sqrt<float>(float x) { return lab_libm(sqrtf)(x); }
template <> inline double lab_sqrt<double>(double x) { return lab_libm(sqrt)(x); }

//@ lab_erfc
template <class T> static inline T lab_erfc(T x);
template <> inline float lab_erfc<float>(float x) { return lab_libm(erfcf)(x); }
template <> inline double lab_erfc<double>(double x) { return lab_libm(erfc)(x); }

//@ lab_lgamma
template <class T> static inline T lab_lgamma(T x);
template <> inline float lab_lgamma<float>(float x) { return lab_libm(lgammaf)(x); }
template <> inline double lab_lgamma<double>(double x) { return lab_libm(lgamma)(x); }

//@ lab_round
template <class T> static inline T lab_round(T x);
template <> inline float lab_round<float>(float x) { return lab_libm(rintf)(x); }
template <> inline double lab_round<double>(double x) { return lab_libm(rint)(x); }

//@ lab_copysign
template <class T> static inline T lab_copysign(T x, T y);
template <> inline float lab_copysign<float>(float x, float y) { return lab_libm(copysignf)(x, y); }
template <> inline double lab_copysign<double>(double x, double y) { return lab_libm(copysign)(x, y); }

//@ lab_fma
template <class T> static inline T lab_fma(T x, T y, T z);
template <> inline float lab_fma<float>(float x, float y, float z) { return lab_libm(fmaf)(x, y, z); }
template <> inline double lab_fma<double>(double x, double y, double z) { return lab_libm(fma)(x, y, z); }

//@ lab_isnan
template <class T> static inline bool lab_isnan(T x) { return x != x; }

//@ lab_isinf
template <class T> static inline bool lab_isinf(T x) { return x - x != 0 && x == x; }

//@ lab_signbit
template <class T> static inline bool lab_signbit(T x) { return x < 0; }
template <> inline bool lab_signbit<float>(float x) { return lab_bitcast<int32_t>(x) < 0; }
template <> inline bool lab_signbit<double>(double x) { return lab_bitcast<int64_t>(x) < 0; }

//@ lab_sign
template <class T> static inline T lab_sign(T x) { return (T)((x > 0) - (x < 0)); }

//@ lab_abs
template <class T> static inline T lab_abs(T x) { return x < 0 ? (T)(0 - x) : x; }
template <> inline float lab_abs<float>(float x) { return lab_libm(fabsf)(x); }
template <> inline double lab_abs<double>(double x) { return lab_libm(fabs)(x); }

//@ lab_float_fmod
// In floats: whole multiples of y are taken away, 52 bits of the quotient in a step, each without
// a rounding; no two floats are further apart than six such steps.
template <class T> static inline T lab_float_fmod(T x, T y) { return lab_libm(fmod)(x, y); }
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
template <> inline float lab_float_fmod<float>(float x, float y) {
    double rest = lab_abs<float>(x), b = lab_abs<float>(y), inverse = 1.0 / b;
#define LAB_STEP rest = __builtin_fma(-__builtin_trunc(rest * inverse), b, rest);
    LAB_STEP LAB_STEP LAB_STEP LAB_STEP LAB_STEP LAB_STEP
#undef LAB_STEP
    rest = rest < 0 ? rest + b : rest;
    rest = rest >= b ? rest - b : rest;
    float result = lab_copysign<float>((float)rest, x);
    return (b == lab_inf) & (x - x == 0) ? x : result;
}
#else
template <> inline float lab_float_fmod<float>(float x, float y) { return lab_libm(fmodf)(x, y); }
#endif

//@ lab_relu
template <class T> static inline T lab_relu(T x) { return x < 0 ? (T)0 : x; }

//@ lab_shift_left lab_shift_right
// A shift by less than zero or by the whole width gives 0, or the sign for a shift to the right.
template <class T> static inline T lab_shift_left(T a, T b) {
    const int width = 8 * sizeof(T);
    bool outside = (b < 0) | (b >= (T)width);
    return outside ? (T)0 : (T)((uint64_t)a << (b & (T)(width - 1)));
}
template <class T> static inline T lab_shift_right(T a, T b) {
    const int width = 8 * sizeof(T);
    bool outside = (b < 0) | (b >= (T)width);
    return outside ? (T)(a < 0 ? -1 : 0) : (T)(a >> (b & (T)(width - 1)));
}

//@ lab_fused
// a * b + c with one rounding where the machine can, with two where it cannot.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
static inline float lab_fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double lab_fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
static inline float lab_fused(float a, float b, float c) { return a * b + c; }
static inline double lab_fused(double a, double b, double c) { return a * b + c; }
#endif

//@ lab_reduced_exp lab_power_of_two lab_exp_of lab_exp_factor
// exp(x) = 2**n * exp(r): n is x / ln 2 rounded, by adding a number so large that no fraction fits.
struct lab_reduced_exp { float r; int32_t n; };
static inline lab_reduced_exp lab_exp_of(float x) {
    float t = lab_fused(x, 1.44269504f, 12582912.0f), n = t - 12582912.0f;
    float r = lab_fused(n, -1.42860677e-6f, lab_fused(n, -0.693145752f, x));
    return lab_reduced_exp{r, (int32_t)(lab_bitcast<uint32_t>(t) - 0x4b400000u)};
}
static inline float lab_power_of_two(int32_t n) {
    return lab_bitcast<float>((uint32_t)(n + 127) << 23);
}
static inline float lab_exp_factor(float r) {
    float q = lab_fused(1.3814804e-3f, r, 8.368773e-3f);
    q = lab_fused(q, r, 4.166839e-2f);
    q = lab_fused(q, r, 0.1666652f);
    q = lab_fused(q, r, 0.49999994f);
    return lab_fused(q, r * r, r) + 1.0f;
}

//@ lab_exp
template <class T> static inline T lab_exp(T x);
template <> inline float lab_exp<float>(float x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    lab_reduced_exp e = lab_exp_of(x);
    float p = lab_exp_factor(e.r);
    // Two factors, since 2**n alone may overflow or be subnormal where the result is not.
    int32_t half = e.n >> 1;
    return p * lab_power_of_two(half) * lab_power_of_two(e.n - half);
}
template <> inline double lab_exp<double>(double x) {
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    double t = lab_fused(x, 1.4426950408889634, 6755399441055744.0), n = t - 6755399441055744.0;
    double r = lab_fused(n, -1.90821492927058770002e-10,
                         lab_fused(n, -6.93147180369123816490e-01, x));
    double q = lab_fused(2.0827678078031843e-9, r, 2.5112106469889583e-8);
    q = lab_fused(q, r, 2.7557577680724703e-7);
    q = lab_fused(q, r, 2.755723466158026e-6);
    q = lab_fused(q, r, 2.480158693277039e-5);
    q = lab_fused(q, r, 1.9841269896588398e-4);
    q = lab_fused(q, r, 1.3888888889111598e-3);
    q = lab_fused(q, r, 8.333333333316947e-3);
    q = lab_fused(q, r, 4.16666666666661e-2);
    q = lab_fused(q, r, 0.16666666666666682);
    q = lab_fused(q, r, 0.5);
    double p = lab_fused(q, r * r, r) + 1.0;
    int64_t k = (int64_t)(lab_bitcast<uint64_t>(t) - 0x4338000000000000u), half = k >> 1;
    double first = lab_bitcast<double>((uint64_t)(half + 1023) << 52);
    return p * first * lab_bitcast<double>((uint64_t)(k - half + 1023) << 52);
}

//@ lab_exp2
template <class T> static inline T lab_exp2(T x);
template <> inline float lab_exp2<float>(float x) {
    x = x > 129.0f ? 129.0f : x;
    x = x < -151.0f ? -151.0f : x;
    float t = x + 12582912.0f, r = x - (t - 12582912.0f);
    int32_t n = (int32_t)(lab_bitcast<uint32_t>(t) - 0x4b400000u), half = n >> 1;
    float q = lab_fused(1.5474816e-4f, r, 1.3400307e-3f);
    q = lab_fused(q, r, 9.618009e-3f);
    q = lab_fused(q, r, 5.5503275e-2f);
    q = lab_fused(q, r, 0.2402265f);
    q = lab_fused(q, r, 0.6931472f);
    float p = lab_fused(q, r, 1.0f);
    return p * lab_power_of_two(half) * lab_power_of_two(n - half);
}
template <> inline double lab_exp2<double>(double x) { return lab_libm(exp2)(x); }

//@ lab_expm1
template <class T> static inline T lab_expm1(T x);
template <> inline float lab_expm1<float>(float x) {
    float y = x > 89.0f ? 89.0f : x;
    y = y < -104.0f ? -104.0f : y;
    lab_reduced_exp e = lab_exp_of(y);
    float q = lab_fused(1.9912534e-4f, e.r, 1.3941135e-3f);
    q = lab_fused(q, e.r, 8.333276e-3f);
    q = lab_fused(q, e.r, 4.166635e-2f);
    q = lab_fused(q, e.r, 0.16666667f);
    q = lab_fused(q, e.r, 0.5f);
    float p = lab_fused(q, e.r * e.r, e.r);
    // (a * (1 + p) - 1 / b) * b with a * b = 2**n
    int32_t half = e.n >> 1, rest = e.n - half;
    float a = lab_power_of_two(half), inverse = lab_power_of_two(-rest);
    float result = lab_fused(a, p, a - inverse) * lab_power_of_two(rest);
    return x == 0 ? x : result;
}
template <> inline double lab_expm1<double>(double x) { return lab_libm(expm1)(x); }

//@ lab_sigmoid
// 1 + exp(-x) needs no subnormal exponential, so one power of two will do, doubled at the end.
template <class T> static inline T lab_sigmoid(T x) { return 1 / (1 + lab_exp<T>(-x)); }
template <> inline float lab_sigmoid<float>(float x) {
    float y = -x > 89.5f ? 89.5f : -x;
    y = y < -87.0f ? -87.0f : y;
    lab_reduced_exp e = lab_exp_of(y);
    return 1.0f / (1.0f + lab_exp_factor(e.r) * lab_power_of_two(e.n - 1) * 2.0f);
}

//@ lab_tanh
template <class T> static inline T lab_tanh(T x);
template <> inline float lab_tanh<float>(float x) {
    float a = lab_abs<float>(x), z = x * x;
    float q = lab_fused(-5.717086e-3f, z, 2.0650616e-2f);
    q = lab_fused(q, z, -5.3743504e-2f);
    q = lab_fused(q, z, 0.13331491f);
    q = lab_fused(q, z, -0.33333284f);
    float small = lab_fused(q * z, x, x);
    float large = 1.0f - 2.0f / (lab_exp<float>(2.0f * a) + 1.0f);
    return lab_copysign<float>(a < 0.625f ? small : large, x);
}
template <> inline double lab_tanh<double>(double x) { return lab_libm(tanh)(x); }

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
template <> inline double lab_log<double>(double x) {
    bool subnormal = x < 2.2250738585072014e-308;
    double y = subnormal ? x * 18014398509481984.0 : x;
    uint64_t bits = lab_bitcast<uint64_t>(y) - 0x3fe6a09e667f3bcdu;
    double n = (double)((int64_t)bits >> 52) - (subnormal ? 54.0 : 0.0);
    double f = lab_bitcast<double>((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double s = f / (2.0 + f), z = s * s;
    double q = lab_fused(0.14797230449450055, z, 0.15313932750289794);
    q = lab_fused(q, z, 0.18183568503267453);
    q = lab_fused(q, z, 0.22222198501667856);
    q = lab_fused(q, z, 0.28571428742992205);
    q = lab_fused(q, z, 0.3999999999941238);
    q = lab_fused(q, z, 0.6666666666666735) * z;
    double half_square = 0.5 * f * f;
    double low = lab_fused(n, 1.90821492927058770002e-10, s * (half_square + q));
    double result = lab_fused(n, 6.93147180369123816490e-01, f - (half_square - low));
    result = x <= 1.7976931348623157e308 ? result : x;
    result = x < 0 ? (double)lab_nanf : result;
    return x == 0 ? -lab_inf : result;
}

//@ lab_log2
template <class T> static inline T lab_log2(T x);
template <> inline float lab_log2<float>(float x) {
    lab_reduced_log l = lab_log_of(x);
    float m = l.f + l.rest, low = (l.f - m) + l.rest;
    float scaled = lab_fused(m, 1.92596303e-8f, low * 1.44269504f);
    return lab_log_special(x, l.n + lab_fused(m, 1.44269502f, scaled));
}
template <> inline double lab_log2<double>(double x) { return lab_libm(log2)(x); }

//@ lab_log10
template <class T> static inline T lab_log10(T x);
template <> inline float lab_log10<float>(float x) {
    lab_reduced_log l = lab_log_of(x);
    float m = l.f + l.rest, low = l.n * 4.6050390e-6f;
    float mantissa = lab_fused(m, 0.434294492f, low);
    return lab_log_special(x, lab_fused(l.n, 0.301025391f, mantissa));
}
template <> inline double lab_log10<double>(double x) { return lab_libm(log10)(x); }

//@ lab_log1p
template <class T> static inline T lab_log1p(T x);
template <> inline float lab_log1p<float>(float x) {
    // The sum loses the low bits of the smaller operand; they come back divided by the sum.
    float sum = 1.0f + x, lost = x > 1.0f ? 1.0f - (sum - x) : x - (sum - 1.0f);
    lab_reduced_log l = lab_log_of(sum);
    float low = lab_fused(l.n, 1.42860677e-6f, l.rest + lost / sum);
    float result = lab_log_special(sum, lab_fused(l.n, 0.693145752f, l.f + low));
    return x == 0 ? x : result;
}
template <> inline double lab_log1p<double>(double x) { return lab_libm(log1p)(x); }

//@ lab_half_exp
// exp(x) / 2, which overflows no earlier than sinh and cosh do.
static inline float lab_half_exp(float x) {
    lab_reduced_exp e = lab_exp_of(x > 90.0f ? 90.0f : x);
    int32_t half = e.n >> 1;
    return lab_exp_factor(e.r) * lab_power_of_two(half) * lab_power_of_two(e.n - half - 1);
}

//@ lab_sinh
template <class T> static inline T lab_sinh(T x);
template <> inline float lab_sinh<float>(float x) {
    float a = lab_abs<float>(x), z = x * x, e = lab_half_exp(a);
    float q = lab_fused(2.8169513e-6f, z, 1.983616e-4f);
    q = lab_fused(lab_fused(q, z, 8.33335e-3f), z, 0.16666667f);
    return a < 1.0f || x != x ? lab_fused(q * z, x, x) : lab_copysign<float>(e - 0.25f / e, x);
}
template <> inline double lab_sinh<double>(double x) { return lab_libm(sinh)(x); }

//@ lab_cosh
template <class T> static inline T lab_cosh(T x);
template <> inline float lab_cosh<float>(float x) {
    float e = lab_half_exp(lab_abs<float>(x));
    return e + 0.25f / e;
}
template <> inline double lab_cosh<double>(double x) { return lab_libm(cosh)(x); }

//@ lab_asinh
template <class T> static inline T lab_asinh(T x);
template <> inline float lab_asinh<float>(float x) {
    float a = lab_abs<float>(x), b = a > 1.0e9f ? 1.0e9f : a, z = b * b;
    float small = lab_log1p<float>(b + z / (1.0f + lab_sqrt<float>(1.0f + z)));
    float large = lab_log<float>(a) + 0.69314718f;
    return lab_copysign<float>(a > 1.0e9f || x != x ? large : small, x);
}
template <> inline double lab_asinh<double>(double x) { return lab_libm(asinh)(x); }

//@ lab_acosh
template <class T> static inline T lab_acosh(T x);
template <> inline float lab_acosh<float>(float x) {
    float b = (x > 1.0e9f ? 1.0e9f : x) - 1.0f;
    float small = lab_log1p<float>(b + lab_sqrt<float>(lab_fused(b, b, 2.0f * b)));
    float result = x > 1.0e9f ? lab_log<float>(x) + 0.69314718f : small;
    return x < 1.0f ? lab_nanf : result;
}
template <> inline double lab_acosh<double>(double x) { return lab_libm(acosh)(x); }

//@ lab_atanh
template <class T> static inline T lab_atanh(T x);
template <> inline float lab_atanh<float>(float x) {
    float a = lab_abs<float>(x);
    return lab_copysign<float>(0.5f * lab_log1p<float>(2.0f * a / (1.0f - a)), x);
}
template <> inline double lab_atanh<double>(double x) { return lab_libm(atanh)(x); }

//@ lab_two_over_pi lab_quadrant lab_small_angle lab_reduced_angle
// x = quadrant * pi/2 + r with |r| <= pi/4.  Up to 2**20 by subtracting multiples of pi/2, beyond by
// multiplying with that window of the bits of 2/pi where multiples of four are already gone
// (Payne and Hanek, 1983).
static inline uint64_t lab_two_over_pi(int32_t word, uint64_t w0, uint64_t w1, uint64_t w2,
                                       uint64_t w3, uint64_t w4) {
    // A table without memory: one of the five words, by masks.
    return (w0 & -(uint64_t)(word == 0)) | (w1 & -(uint64_t)(word == 1))
        | (w2 & -(uint64_t)(word == 2)) | (w3 & -(uint64_t)(word == 3))
        | (w4 & -(uint64_t)(word == 4));
}
struct lab_quadrant { double r; int32_t n; };
static inline lab_quadrant lab_small_angle(float a) {
    double x = a, t = x * 0.63661977236758134 + 6755399441055744.0, n = t - 6755399441055744.0;
    double r = (x - n * 1.5707963267341256) - n * 6.0771005065061922e-11;
    return lab_quadrant{r, (int32_t)lab_bitcast<uint64_t>(t)};
}
static inline lab_quadrant lab_reduced_angle(float a) {
    uint32_t bits = lab_bitcast<uint32_t>(a);
    int32_t start = (int32_t)(bits >> 23) - 120;
    start = start > 0 ? start : 0;
    uint64_t mantissa = (bits & 0x007fffffu) | 0x00800000u, shift = (uint32_t)start & 31u;
    int32_t word = start >> 5;
    uint64_t high = lab_two_over_pi(word, 0x00000000a2f9836eu, 0xa2f9836e4e441529u, 0x4e441529fc2757d1u,
                                    0xfc2757d1f534ddc0u, 0xf534ddc0db629599u);
    uint64_t middle = lab_two_over_pi(word, 0xa2f9836e4e441529u, 0x4e441529fc2757d1u, 0xfc2757d1f534ddc0u,
                                    0xf534ddc0db629599u, 0xdb6295993c439041u);
    uint64_t low = lab_two_over_pi(word, 0x4e441529fc2757d1u, 0xfc2757d1f534ddc0u, 0xf534ddc0db629599u,
                                    0xdb6295993c439041u, 0x3c439041fe5163abu);
    high = (high << shift) >> 32, middle = (middle << shift) >> 32, low = (low << shift) >> 32;
    uint64_t turns = ((mantissa * high) << 32) + mantissa * middle + ((mantissa * low) >> 32);
    uint64_t quadrant = (turns + 0x2000000000000000u) >> 62;
    double rest = (double)(int64_t)(turns - (quadrant << 62)) * 3.4061215800304556e-19;
    lab_quadrant small = lab_small_angle(a);
    bool large = a >= 1048576.0f;
    return lab_quadrant{large ? rest : small.r, large ? (int32_t)quadrant : small.n};
}

//@ lab_sin_part lab_cos_part
// sin and cos of r, |r| <= pi/4.
template <class T> static inline T lab_sin_part(T r) {
    T z = r * r, q = lab_fused((T)2.7182373e-6, z, (T)-1.9839327e-4);
    q = lab_fused(lab_fused(q, z, (T)8.333329e-3), z, (T)-0.16666667);
    return lab_fused(q * z, r, r);
}
template <class T> static inline T lab_cos_part(T r) {
    T z = r * r, q = lab_fused((T)-2.7209538e-7, z, (T)2.4799512e-5);
    q = lab_fused(lab_fused(q, z, (T)-1.3888883e-3), z, (T)4.1666668e-2);
    return lab_fused(q, z * z, lab_fused((T)-0.5, z, (T)1));
}

//@ lab_sin
template <class T> static inline T lab_sin(T x);
template <> inline float lab_sin<float>(float x) {
    lab_quadrant q = lab_reduced_angle(lab_abs<float>(x));
    float r = (float)q.r, y = q.n & 1 ? lab_cos_part(r) : lab_sin_part(r);
    uint32_t sign = ((uint32_t)(q.n & 2) << 30) ^ (lab_bitcast<uint32_t>(x) & 0x80000000u);
    y = lab_bitcast<float>(lab_bitcast<uint32_t>(y) ^ sign);
    return x - x == 0 ? y : lab_nanf;
}
template <> inline double lab_sin<double>(double x) { return lab_libm(sin)(x); }

//@ lab_cos lab_cos_of
static inline float lab_cos_of(lab_quadrant q) {
    float r = (float)q.r, y = q.n & 1 ? lab_sin_part(r) : lab_cos_part(r);
    uint32_t sign = (uint32_t)((q.n + 1) & 2) << 30;
    return lab_bitcast<float>(lab_bitcast<uint32_t>(y) ^ sign);
}
template <class T> static inline T lab_cos(T x);
template <> inline float lab_cos<float>(float x) {
    float y = lab_cos_of(lab_reduced_angle(lab_abs<float>(x)));
    return x - x == 0 ? y : lab_nanf;
}
template <> inline double lab_cos<double>(double x) { return lab_libm(cos)(x); }

//@ lab_tan
template <class T> static inline T lab_tan(T x);
template <> inline float lab_tan<float>(float x) {
    lab_quadrant q = lab_reduced_angle(lab_abs<float>(x));
    double s = lab_sin_part(q.r), c = lab_cos_part(q.r);
    float y = (float)((q.n & 1 ? -c : s) / (q.n & 1 ? s : c));
    y = x < 0 ? -y : y;
    y = x == 0 ? x : y;
    return x - x == 0 ? y : lab_nanf;
}
template <> inline double lab_tan<double>(double x) { return lab_libm(tan)(x); }

//@ lab_atan_part
// atan(t) for 0 <= t <= 1.
static inline float lab_atan_part(float t) {
    float z = t * t;
    float q = lab_fused(-1.7935939e-3f, z, 1.0914481e-2f);
    q = lab_fused(q, z, -3.1177614e-2f);
    q = lab_fused(q, z, 5.795736e-2f);
    q = lab_fused(q, z, -8.403437e-2f);
    q = lab_fused(q, z, 0.10952181f);
    q = lab_fused(q, z, -0.14264241f);
    q = lab_fused(q, z, 0.19998549f);
    q = lab_fused(q, z, -0.33333298f);
    return lab_fused(q * z, t, t);
}

//@ lab_atan
template <class T> static inline T lab_atan(T x);
template <> inline float lab_atan<float>(float x) {
    float a = lab_abs<float>(x), r = lab_atan_part(a > 1.0f ? 1.0f / a : a);
    return lab_copysign<float>(a > 1.0f ? 1.57079637f - (r + 4.37113883e-8f) : r, x);
}
template <> inline double lab_atan<double>(double x) { return lab_libm(atan)(x); }

//@ lab_atan2
template <class T> static inline T lab_atan2(T y, T x);
template <> inline float lab_atan2<float>(float y, float x) {
    float a = lab_abs<float>(x), b = lab_abs<float>(y);
    float small = a < b ? a : b, large = a < b ? b : a;
    float t = small == large ? (large == 0 ? 0.0f : 1.0f) : small / large;
    float r = lab_atan_part(t);
    r = a < b ? 1.57079637f - (r + 4.37113883e-8f) : r;
    r = lab_bitcast<int32_t>(x) < 0 ? 3.14159274f - (r + 8.74227766e-8f) : r;
    return (x != x) | (y != y) ? lab_nanf : lab_copysign<float>(r, y);
}
template <> inline double lab_atan2<double>(double y, double x) { return lab_libm(atan2)(y, x); }

//@ lab_asin_part
// asin(t) for |t| <= 1/2.
static inline float lab_asin_part(float t) {
    float z = t * t;
    float q = lab_fused(3.7516452e-2f, z, 1.4438604e-2f);
    q = lab_fused(q, z, 3.1807717e-2f);
    q = lab_fused(q, z, 4.4516955e-2f);
    q = lab_fused(q, z, 7.500504e-2f);
    q = lab_fused(q, z, 0.1666666f);
    return lab_fused(q * z, t, t);
}

//@ lab_asin
template <class T> static inline T lab_asin(T x);
template <> inline float lab_asin<float>(float x) {
    float a = lab_abs<float>(x), t = a > 0.5f ? lab_sqrt<float>(0.5f - 0.5f * a) : a;
    float r = lab_asin_part(t);
    return lab_copysign<float>(a > 0.5f ? 1.57079637f - (2.0f * r + 4.37113883e-8f) : r, x);
}
template <> inline double lab_asin<double>(double x) { return lab_libm(asin)(x); }

//@ lab_acos
template <class T> static inline T lab_acos(T x);
template <> inline float lab_acos<float>(float x) {
    float a = lab_abs<float>(x), t = a > 0.5f ? lab_sqrt<float>(0.5f - 0.5f * a) : x;
    float r = lab_asin_part(t);
    float far = x > 0 ? 2.0f * r : 3.14159274f - (2.0f * r + 8.74227766e-8f);
    return a > 0.5f ? far : 1.57079637f - (r + 4.37113883e-8f);
}
template <> inline double lab_acos<double>(double x) { return lab_libm(acos)(x); }

//@ lab_hypot
template <class T> static inline T lab_hypot(T x, T y);
template <> inline float lab_hypot<float>(float x, float y) {
    double a = x, b = y;
    float result = (float)lab_sqrt<double>(a * a + b * b);
    return (lab_abs<float>(x) == lab_inff) | (lab_abs<float>(y) == lab_inff) ? lab_inff : result;
}
template <> inline double lab_hypot<double>(double x, double y) { return lab_libm(hypot)(x, y); }

//@ lab_erf
template <class T> static inline T lab_erf(T x);
template <> inline float lab_erf<float>(float x) {
    float a = lab_abs<float>(x), z = x * x;
    float q = lab_fused(7.889105e-5f, z, -8.0208364e-4f);
    q = lab_fused(q, z, 5.1895347e-3f);
    q = lab_fused(q, z, -2.6854444e-2f);
    q = lab_fused(q, z, 0.112836f);
    q = lab_fused(q, z, -0.37612626f);
    q = lab_fused(q, z, 0.12837917f);
    float small = lab_fused(q, x, x);
    float b = a > 4.0f ? 4.0f : a;  // -log(1 - erf(a)) as a polynomial, from 1 to 4
    float p = lab_fused(2.1683813e-5f, b, -4.4129664e-4f);
    p = lab_fused(p, b, 4.2043454e-3f);
    p = lab_fused(p, b, -2.520762e-2f);
    p = lab_fused(p, b, 0.10841749f);
    p = lab_fused(p, b, 0.633221f);
    p = lab_fused(p, b, 1.1295779f);
    p = lab_fused(p, b, -1.8790737e-4f);
    lab_reduced_exp e = lab_exp_of(-p);
    float large = lab_copysign<float>(1.0f - lab_exp_factor(e.r) * lab_power_of_two(e.n), x);
    return a < 1.0f || x != x ? small : large;
}
template <> inline double lab_erf<double>(double x) { return lab_libm(erf)(x); }

//@ lab_pow lab_log2_for_pow lab_exp2_for_pow
// |x|**y = 2**(y * log2 |x|) in double, with just the digits that a float needs.
static inline double lab_log2_for_pow(double a) {
    uint64_t bits = lab_bitcast<uint64_t>(a) - 0x3fe6a09e667f3bcdu;
    double n = (double)((int64_t)bits >> 52);
    double f = lab_bitcast<double>((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double q = lab_fused(0.07736949374061723, f, -0.1428386755043944);
    q = lab_fused(q, f, 0.14474855827673574);
    q = lab_fused(q, f, -0.14315661786085862);
    q = lab_fused(q, f, 0.15876980440486393);
    q = lab_fused(q, f, -0.18030058717259984);
    q = lab_fused(q, f, 0.20617535863257322);
    q = lab_fused(q, f, -0.2404531661695704);
    q = lab_fused(q, f, 0.28853729350449364);
    q = lab_fused(q, f, -0.3606736748177966);
    q = lab_fused(q, f, 0.4808983613951061);
    q = lab_fused(q, f, -0.7213475208688112);
    q = lab_fused(q, f, 1.4426950408687067);
    double result = lab_fused(q, f, n);
    result = a <= 1.7976931348623157e308 ? result : a;
    return a == 0 ? -lab_inf : result;
}
static inline float lab_exp2_for_pow(double x) {
    x = x > 200.0 ? 200.0 : x;
    x = x < -200.0 ? -200.0 : x;
    double t = x + 6755399441055744.0, r = x - (t - 6755399441055744.0);
    double q = lab_fused(1.5345807510209293e-4, r, 1.3399931180555422e-3);
    q = lab_fused(q, r, 9.618488973803234e-3);
    q = lab_fused(q, r, 5.550328777086136e-2);
    q = lab_fused(q, r, 0.24022646890480212);
    q = lab_fused(q, r, 0.6931472057371917);
    q = lab_fused(q, r, 1.0000000005541896);
    uint64_t n = lab_bitcast<uint64_t>(t) - 0x4338000000000000u;
    return (float)(q * lab_bitcast<double>((n + 1023) << 52));
}
// Integers: repeated squaring, which wraps; a negative exponent leaves only 1 and -1.
template <class T> static inline T lab_pow(T x, T y) {
    if (y < 0) return x == 1 ? 1 : x == (T)-1 ? (T)(y % 2 ? -1 : 1) : 0;
    uint64_t result = 1, base = (uint64_t)x;
    for (uint64_t left = (uint64_t)y; left != 0; left >>= 1) {
        result = left & 1 ? result * base : result;
        base *= base;
    }
    return (T)result;
}
template <> inline float lab_pow<float>(float x, float y) {
    float result = lab_exp2_for_pow(y * lab_log2_for_pow(lab_abs<float>(x)));
    bool whole = lab_trunc<float>(y) == y, odd = whole & (lab_trunc<float>(0.5f * y) * 2.0f != y);
    odd = odd & (lab_abs<float>(y) < 16777216.0f);
    bool negative = lab_bitcast<int32_t>(x) < 0;
    result = (negative & odd) ? -result : result;
    bool undefined = (x < 0) & (x - x == 0) & !whole & (y - y == 0);
    result = undefined ? lab_nanf : result;
    bool one = (x == 1.0f) | (y == 0.0f) | ((x == -1.0f) & (y - y != 0) & (y == y));
    return one ? 1.0f : result;
}
template <> inline double lab_pow<double>(double x, double y) { return lab_libm(pow)(x, y); }

//@ lab_rsqrt
template <class T> static inline T lab_rsqrt(T x) { return 1 / lab_sqrt<T>(x); }

//@ lab_square
template <class T> static inline T lab_square(T x) { return (T)(x * x); }

//@ lab_erfinv
// Winitzki's approximation, then Newton's method in double: f = erf(y) - x.
template <class T> static inline T lab_erfinv(T x) {
    double v = x, w = lab_log<double>((1 - v) * (1 + v)), a = 4.330746750799873 + 0.5 * w;
    double y = lab_sqrt<double>(lab_sqrt<double>(a * a - w * 6.802721088435374) - a);
    y = lab_copysign<double>(y, v);
    for (int step = 0; step < 3; step++) {
        y -= (lab_erf<double>(y) - v) * 0.88622692545275801 * lab_exp<double>(y * y);
    }
    y = v == 1 ? lab_inf : v == -1 ? -lab_inf : v == 0 ? v : y;
    return (T)(lab_abs<double>(v) <= 1 ? y : (double)lab_nanf);
}
// In floats: x times a polynomial in w = -log(1 - x * x), or in sqrt(w) far out (Giles, 2010).
template <> inline float lab_erfinv<float>(float x) {
    float w = -lab_log<float>((1.0f - x) * (1.0f + x)), s = w - 1.0f, t = lab_sqrt<float>(w) - 3.2f;
    float p = lab_fused(-8.791056e-9f, s, 1.4191190e-7f);
    p = lab_fused(p, s, -5.2469659e-7f);
    p = lab_fused(p, s, -4.4015760e-6f);
    p = lab_fused(p, s, 3.8228995e-5f);
    p = lab_fused(p, s, 1.0028132e-4f);
    p = lab_fused(p, s, -2.3764428e-3f);
    p = lab_fused(p, s, 4.2506428e-3f);
    p = lab_fused(p, s, 0.24783289f);
    p = lab_fused(p, s, 1.1273744f);
    float q = lab_fused(9.8500386e-5f, t, -1.1371897e-4f);
    q = lab_fused(q, t, -3.567949e-4f);
    q = lab_fused(q, t, 1.1556396e-3f);
    q = lab_fused(q, t, -1.9937968e-3f);
    q = lab_fused(q, t, 2.9257976e-3f);
    q = lab_fused(q, t, -4.2942353e-3f);
    q = lab_fused(q, t, 5.976056e-3f);
    q = lab_fused(q, t, 1.0046924f);
    q = lab_fused(q, t, 3.0336366f);
    float result = x * (w < 5.0f ? p : q);
    return lab_abs<float>(x) == 1.0f ? lab_copysign<float>(lab_inff, x) : result;
}

//@ lab_digamma
// Reflection to positive arguments, recurrence to at least 10, then the asymptotic series.
template <class T> static inline T lab_digamma(T given) {
    double x = given, shift = 0;
    if (x == 0) return (T)lab_copysign<double>(lab_inf, -x);
    if (x < 0) {
        if (lab_trunc<double>(x) == x) return (T)lab_nanf;
        const double pi = 3.14159265358979324;
        shift = -pi / lab_tan<double>(pi * (x - lab_trunc<double>(x)));
        x = 1 - x;
    }
    for (; x < 10; x += 1) shift -= 1 / x;
    double z = 1 / (x * x);
    double series = 8.33333333333333333e-2 - z * (8.33333333333333333e-3
        - z * (3.96825396825396825e-3 - z * (4.16666666666666667e-3
        - z * (7.57575757575757576e-3 - z * 2.10927960927960928e-2))));
    return (T)(lab_log<double>(x) - 0.5 / x - z * series + shift);
}

//@ lab_philox lab_philox_words
// Philox4x32-10 (Salmon et al., SC 2011): counter is the offset, key the seed, low words first.
struct lab_philox_words { uint32_t first, second; };
static inline lab_philox_words lab_philox(int64_t seed, int64_t offset) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)((uint64_t)seed >> 32);
    uint32_t c0 = (uint32_t)offset, c1 = (uint32_t)((uint64_t)offset >> 32), c2 = 0, c3 = 0;
    for (int round = 0; round < 10; round++) {
        uint64_t low = (uint64_t)c0 * 0xd2511f53u, high = (uint64_t)c2 * 0xcd9e8d57u;
        c0 = (uint32_t)(high >> 32) ^ c1 ^ key0;
        c1 = (uint32_t)high;
        c2 = (uint32_t)(low >> 32) ^ c3 ^ key1;
        c3 = (uint32_t)low;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return lab_philox_words{c0, c1};
}

//@ lab_uniform
// A word as a float in [0, 1): its sign is folded away, then it is scaled by almost 2**-31.
static inline float lab_uniform(uint32_t word) {
    int32_t folded = (int32_t)(word >> 31 ? ~word : word);
    return (float)folded * 4.6566127342e-10f;
}

//@ lab_philox_uniform
static inline float lab_philox_uniform(int64_t seed, int64_t offset) {
    return lab_uniform(lab_philox(seed, offset).first);
}

//@ lab_philox_normal
static inline float lab_philox_normal(int64_t seed, int64_t offset) {
    lab_philox_words words = lab_philox(seed, offset);
    float u = lab_uniform(words.first);
    u = u < 1.0e-7f ? 1.0e-7f : u;
    float radius = lab_sqrt<float>(-2.0f * lab_log<float>(u));
    return radius * lab_cos_of(lab_small_angle(6.2831855f * lab_uniform(words.second)));
}

//@ lab_philox_bits
static inline int64_t lab_philox_bits(int64_t seed, int64_t offset) {
    return (int64_t)lab_philox(seed, offset).first;
}

//@ lab_floordiv lab_remainder lab_truncdiv lab_fmod lab_integer_division
// An integer divided by zero gives -1 or the dividend here; torch raises.  No kernel may trap.
template <class T> struct lab_integer_division {
    static inline T divisor(T b) { return b == 0 ? (T)1 : b; }
    static inline T trunc(T a, T b) { return b == (T)-1 ? (T)(0 - a) : (T)(a / divisor(b)); }
    static inline T fmod(T a, T b) { return b == (T)-1 ? (T)0 : (T)(a % divisor(b)); }
    static inline T floor(T a, T b) {
        T quotient = trunc(a, b), rest = fmod(a, b);
        return (T)(quotient - ((rest != 0) & ((rest < 0) != (b < 0))));
    }
    static inline T remainder(T a, T b) {
        T rest = fmod(a, b);
        return (T)((rest != 0) & ((rest < 0) != (b < 0)) ? rest + b : rest);
    }
};
template <class T> struct lab_unsigned_division {
    static inline T divisor(T b) { return b == 0 ? (T)1 : b; }
    static inline T trunc(T a, T b) { return (T)(a / divisor(b)); }
    static inline T fmod(T a, T b) { return (T)(a % divisor(b)); }
    static inline T floor(T a, T b) { return trunc(a, b); }
    static inline T remainder(T a, T b) { return fmod(a, b); }
};
template <> struct lab_integer_division<uint8_t> : lab_unsigned_division<uint8_t> {};
template <> struct lab_integer_division<uint16_t> : lab_unsigned_division<uint16_t> {};
template <> struct lab_integer_division<uint32_t> : lab_unsigned_division<uint32_t> {};
template <> struct lab_integer_division<uint64_t> : lab_unsigned_division<uint64_t> {};
template <class T> struct lab_float_division {
    static inline T trunc(T a, T b) { return lab_trunc<T>(a / b); }
    static inline T fmod(T a, T b) { return lab_float_fmod(a, b); }
    static inline T remainder(T a, T b) {
        T rest = lab_float_fmod(a, b);
        return (rest != 0) & ((b < 0) != (rest < 0)) ? rest + b : rest;
    }
    // The way Python and torch define it: exact multiples do not fall short by a rounding.
    static inline T floor(T a, T b) {
        T rest = lab_float_fmod(a, b), quotient = (a - rest) / b;
        quotient = (rest != 0) & ((b < 0) != (rest < 0)) ? quotient - 1 : quotient;
        T whole = lab_floor<T>(quotient);
        whole = quotient - whole > (T)0.5 ? whole + 1 : whole;
        whole = quotient == 0 ? lab_copysign<T>((T)0, a / b) : whole;
        return b == 0 ? a / b : whole;
    }
};
template <> struct lab_integer_division<float> : lab_float_division<float> {};
template <> struct lab_integer_division<double> : lab_float_division<double> {};
template <class T> static inline T lab_floordiv(T a, T b) {
    return lab_integer_division<T>::floor(a, b);
}
template <class T> static inline T lab_remainder(T a, T b) {
    return lab_integer_division<T>::remainder(a, b);
}
template <class T> static inline T lab_truncdiv(T a, T b) {
    return lab_integer_division<T>::trunc(a, b);
}
template <class T> static inline T lab_fmod(T a, T b) {
    return lab_integer_division<T>::fmod(a, b);
}
