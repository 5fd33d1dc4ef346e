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
static inline int lab_outside(int64_t index, int64_t size) {
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
struct lab_half { uint16_t bits; };
struct lab_bfloat16 { uint16_t bits; };

//@ lab_half_to_float lab_float_to_half
static inline float lab_half_to_float(lab_half h) {
    uint32_t sign = (uint32_t)(h.bits & 0x8000) << 16, rest = (uint32_t)(h.bits & 0x7fff) << 13;
    // 2**112 moves the exponent to float's; subnormals become normal in the product.
    float scaled = lab_bitcast<float>(rest) * 5.192296858534828e33f;
    uint32_t special = rest >= 0x0f800000u ? rest | 0x7f800000u : lab_bitcast<uint32_t>(scaled);
    return lab_bitcast<float>(sign | special);
}
static inline lab_half lab_float_to_half(float x) {
    uint32_t bits = lab_bitcast<uint32_t>(x), sign = bits & 0x80000000u, magnitude = bits ^ sign;
    uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1) - 0x38000000u) >> 13;
    // Below 2**-14 adding 0.5 leaves the rounded subnormal in the last bits.
    uint32_t small = lab_bitcast<uint32_t>(lab_bitcast<float>(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t result = magnitude < 0x38800000u ? small : normal;
    result = magnitude >= 0x477ff000u ? 0x7c00u : result;
    result = magnitude > 0x7f800000u ? 0x7e00u : result;
    return lab_half{(uint16_t)(result | (sign >> 16))};
}

//@ lab_bfloat16_to_float lab_float_to_bfloat16
static inline float lab_bfloat16_to_float(lab_bfloat16 b) {
    return lab_bitcast<float>((uint32_t)b.bits << 16);
}
static inline lab_bfloat16 lab_float_to_bfloat16(float x) {
    uint32_t bits = lab_bitcast<uint32_t>(x);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return lab_bfloat16{(uint16_t)(x != x ? 0x7fc0u : rounded)};
}

//@ lab_convert
template <class To, class From> struct lab_conversion {
    static inline To of(From x) { return (To)x; }
};
// torch goes through int64 from a float to an unsigned byte, which wraps what is out of range.
template <class From> struct lab_conversion<uint8_t, From> {
    static inline uint8_t of(From x) { return (uint8_t)(int64_t)x; }
};
template <class From> struct lab_conversion<lab_half, From> {
    static inline lab_half of(From x) { return lab_float_to_half((float)x); }
};
template <class From> struct lab_conversion<lab_bfloat16, From> {
    static inline lab_bfloat16 of(From x) { return lab_float_to_bfloat16((float)x); }
};
template <class To> struct lab_conversion<To, lab_half> {
    static inline To of(lab_half x) { return lab_conversion<To, float>::of(lab_half_to_float(x)); }
};
template <class To> struct lab_conversion<To, lab_bfloat16> {
    static inline To of(lab_bfloat16 x) {
        return lab_conversion<To, float>::of(lab_bfloat16_to_float(x));
    }
};
template <class To, class From> static inline To lab_convert(From x) {
    return lab_conversion<To, From>::of(x);
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

//@ lab_exp
template <class T> static inline T lab_exp(T x);
template <> inline float lab_exp<float>(float x) { return lab_libm(expf)(x); }
template <> inline double lab_exp<double>(double x) { return lab_libm(exp)(x); }

//@ lab_exp2
template <class T> static inline T lab_exp2(T x);
template <> inline float lab_exp2<float>(float x) { return lab_libm(exp2f)(x); }
template <> inline double lab_exp2<double>(double x) { return lab_libm(exp2)(x); }

//@ lab_expm1
template <class T> static inline T lab_expm1(T x);
template <> inline float lab_expm1<float>(float x) { return lab_libm(expm1f)(x); }
template <> inline double lab_expm1<double>(double x) { return lab_libm(expm1)(x); }

//@ lab_log
template <class T> static inline T lab_log(T x);
template <> inline float lab_log<float>(float x) { return lab_libm(logf)(x); }
template <> inline double lab_log<double>(double x) { return lab_libm(log)(x); }

//@ lab_log2
template <class T> static inline T lab_log2(T x);
template <> inline float lab_log2<float>(float x) { return lab_libm(log2f)(x); }
template <> inline double lab_log2<double>(double x) { return lab_libm(log2)(x); }

//@ lab_log10
template <class T> static inline T lab_log10(T x);
template <> inline float lab_log10<float>(float x) { return lab_libm(log10f)(x); }
template <> inline double lab_log10<double>(double x) { return lab_libm(log10)(x); }

//@ lab_log1p
template <class T> static inline T lab_log1p(T x);
template <> inline float lab_log1p<float>(float x) { return lab_libm(log1pf)(x); }
template <> inline double lab_log1p<double>(double x) { return lab_libm(log1p)(x); }

//@ lab_sin
template <class T> static inline T lab_sin(T x);
template <> inline float lab_sin<float>(float x) { return lab_libm(sinf)(x); }
template <> inline double lab_sin<double>(double x) { return lab_libm(sin)(x); }

//@ lab_cos
template <class T> static inline T lab_cos(T x);
template <> inline float lab_cos<float>(float x) { return lab_libm(cosf)(x); }
template <> inline double lab_cos<double>(double x) { return lab_libm(cos)(x); }

//@ lab_tan
template <class T> static inline T lab_tan(T x);
template <> inline float lab_tan<float>(float x) { return lab_libm(tanf)(x); }
template <> inline double lab_tan<double>(double x) { return lab_libm(tan)(x); }

//@ lab_asin
template <class T> static inline T lab_asin(T x);
template <> inline float lab_asin<float>(float x) { return lab_libm(asinf)(x); }
template <> inline double lab_asin<double>(double x) { return lab_libm(asin)(x); }

//@ lab_acos
template <class T> static inline T lab_acos(T x);
template <> inline float lab_acos<float>(float x) { return lab_libm(acosf)(x); }
template <> inline double lab_acos<double>(double x) { return lab_libm(acos)(x); }

//@ lab_atan
template <class T> static inline T lab_atan(T x);
template <> inline float lab_atan<float>(float x) { return lab_libm(atanf)(x); }
template <> inline double lab_atan<double>(double x) { return lab_libm(atan)(x); }

//@ lab_sinh
template <class T> static inline T lab_sinh(T x);
template <> inline float lab_sinh<float>(float x) { return lab_libm(sinhf)(x); }
template <> inline double lab_sinh<double>(double x) { return lab_libm(sinh)(x); }

//@ lab_cosh
template <class T> static inline T lab_cosh(T x);
template <> inline float lab_cosh<float>(float x) { return lab_libm(coshf)(x); }
template <> inline double lab_cosh<double>(double x) { return lab_libm(cosh)(x); }

//@ lab_tanh
template <class T> static inline T lab_tanh(T x);
template <> inline float lab_tanh<float>(float x) { return lab_libm(tanhf)(x); }
template <> inline double lab_tanh<double>(double x) { return lab_libm(tanh)(x); }

//@ lab_asinh
template <class T> static inline T lab_asinh(T x);
template <> inline float lab_asinh<float>(float x) { return lab_libm(asinhf)(x); }
template <> inline double lab_asinh<double>(double x) { return lab_libm(asinh)(x); }

//@ lab_acosh
template <class T> static inline T lab_acosh(T x);
template <> inline float lab_acosh<float>(float x) { return lab_libm(acoshf)(x); }
template <> inline double lab_acosh<double>(double x) { return lab_libm(acosh)(x); }

//@ lab_atanh
template <class T> static inline T lab_atanh(T x);
template <> inline float lab_atanh<float>(float x) { return lab_libm(atanhf)(x); }
template <> inline double lab_atanh<double>(double x) { return lab_libm(atanh)(x); }

//@ lab_erf
template <class T> static inline T lab_erf(T x);
template <> inline float lab_erf<float>(float x) { return lab_libm(erff)(x); }
template <> inline double lab_erf<double>(double x) { return lab_libm(erf)(x); }

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

//@ lab_pow
template <class T> static inline T lab_pow(T x, T y);
template <> inline float lab_pow<float>(float x, float y) { return lab_libm(powf)(x, y); }
template <> inline double lab_pow<double>(double x, double y) { return lab_libm(pow)(x, y); }

//@ lab_atan2
template <class T> static inline T lab_atan2(T x, T y);
template <> inline float lab_atan2<float>(float x, float y) { return lab_libm(atan2f)(x, y); }
template <> inline double lab_atan2<double>(double x, double y) { return lab_libm(atan2)(x, y); }

//@ lab_hypot
template <class T> static inline T lab_hypot(T x, T y);
template <> inline float lab_hypot<float>(float x, float y) { return lab_libm(hypotf)(x, y); }
template <> inline double lab_hypot<double>(double x, double y) { return lab_libm(hypot)(x, y); }

//@ lab_copysign
template <class T> static inline T lab_copysign(T x, T y);
template <> inline float lab_copysign<float>(float x, float y) { return lab_libm(copysignf)(x, y); }
template <> inline double lab_copysign<double>(double x, double y) { return lab_libm(copysign)(x, y); }

//@ lab_fma
template <class T> static inline T lab_fma(T x, T y, T z);
template <> inline float lab_fma<float>(float x, float y, float z) { return lab_libm(fmaf)(x, y, z); }
template <> inline double lab_fma<double>(double x, double y, double z) { return lab_libm(fma)(x, y, z); }

//@ lab_float_fmod
template <class T> static inline T lab_float_fmod(T x, T y);
template <> inline float lab_float_fmod<float>(float x, float y) { return lab_libm(fmodf)(x, y); }
template <> inline double lab_float_fmod<double>(double x, double y) { return lab_libm(fmod)(x, y); }

//@ lab_sigmoid
template <class T> static inline T lab_sigmoid(T x) { return 1 / (1 + lab_exp<T>(-x)); }

//@ lab_rsqrt
template <class T> static inline T lab_rsqrt(T x) { return 1 / lab_sqrt<T>(x); }

//@ lab_isnan
template <class T> static inline bool lab_isnan(T x) { return x != x; }

//@ lab_isinf
template <class T> static inline bool lab_isinf(T x) { return x - x != 0 && x == x; }

//@ lab_signbit
template <class T> static inline bool lab_signbit(T x) { return x < 0; }
template <> inline bool lab_signbit<float>(float x) { return lab_bitcast<int32_t>(x) < 0; }
template <> inline bool lab_signbit<double>(double x) { return lab_bitcast<int64_t>(x) < 0; }

//@ lab_sign
template <class T> static inline T lab_sign(T x) {
    T sign = (T)((x > 0) - (x < 0));
    return x != x ? x : sign;
}

//@ lab_abs
template <class T> static inline T lab_abs(T x) { return x < 0 ? (T)(0 - x) : x; }
template <> inline float lab_abs<float>(float x) { return lab_libm(fabsf)(x); }
template <> inline double lab_abs<double>(double x) { return lab_libm(fabs)(x); }

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
