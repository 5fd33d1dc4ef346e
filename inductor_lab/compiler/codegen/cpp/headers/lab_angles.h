// Trigonometry: Cody and Waite's reduction, then polynomials.

//@ lab_angle_function lab_double_angle_function lab_quotient_function lab_double_quotient_function
// lab_angle_function(sinf, near) defines lab_any_sinf(x): near(x) for small |x|, and the C library's
// sinf(x) if |x| >= 2**17 (2**30 for double), where the reduction needs many more digits of pi.  For
// functions of two numbers, the limit is on their quotient.  The rare case must not slow down the
// common one: GCC's vector code calls vector versions of sinf, by their names in the x86-64 vector
// ABI.  They are defined here, with one test for all lanes.  Other compilers get a branch.
#if defined(__x86_64__) && defined(__ELF__) && defined(__GNUC__) && !defined(__clang__)
template <int bytes> struct lab_register {
    typedef float floats __attribute__((vector_size(bytes)));
    typedef double doubles __attribute__((vector_size(bytes)));
    typedef int32_t ints __attribute__((vector_size(bytes)));
    typedef int64_t longs __attribute__((vector_size(bytes)));
    typedef uint64_t bits __attribute__((vector_size(bytes)));
    // The sign bit of a lane is set if its magnitude is at least 2**17 (float) or 2**30 (double).
    static inline ints far(floats x) { return 0x47ffffff - ((ints)x & 0x7fffffff); }
    static inline ints far(doubles x) { return (ints)(0x41cfffff - (longs)(((bits)x << 1) >> 33)); }
};
#define lab_any16(signs) __builtin_ia32_movmskps((lab_register<16>::floats)(signs))
#define lab_any32(signs) __builtin_ia32_movmskps256((lab_register<32>::floats)(signs))
#define lab_any64(signs) __builtin_ia32_cmpd512_mask(signs, lab_register<64>::ints{}, 1, -1)
#define lab_angle_version(name, near, T, isa, lanes, bytes)                                      \
    extern "C" __attribute__((visibility("hidden"))) lab_register<bytes>::T##s                   \
    _ZGV##isa##N##lanes##v_##name(lab_register<bytes>::T##s x) {                                 \
        if (lab_any##bytes(lab_register<bytes>::far(x))) return lab_one_by_one_##name(x);        \
        T given[lanes], found[lanes];                                                            \
        __builtin_memcpy(given, &x, sizeof(x));                                                  \
        _Pragma("omp simd")                                                                      \
        for (int k = 0; k < lanes; k++) found[k] = near(given[k]);                               \
        __builtin_memcpy(&x, found, sizeof(x));                                                  \
        return x;                                                                                \
    }
#define lab_quotient_version(name, near, T, isa, lanes, bytes)                                   \
    extern "C" __attribute__((visibility("hidden"))) lab_register<bytes>::T##s                   \
    _ZGV##isa##N##lanes##vv_##name(lab_register<bytes>::T##s x, lab_register<bytes>::T##s y) {   \
        bool far = lab_any##bytes(lab_register<bytes>::far(x / y));                              \
        T above[lanes], below[lanes], found[lanes];                                              \
        __builtin_memcpy(above, &x, sizeof(x));                                                  \
        __builtin_memcpy(below, &y, sizeof(y));                                                  \
        if (far) {                                                                               \
            _Pragma("omp simd")                                                                  \
            for (int k = 0; k < lanes; k++) found[k] = lab_far_##name(above[k], below[k]);       \
        } else {                                                                                 \
            _Pragma("omp simd")                                                                  \
            for (int k = 0; k < lanes; k++) found[k] = near(above[k], below[k]);                 \
        }                                                                                        \
        __builtin_memcpy(&x, found, sizeof(x));                                                  \
        return x;                                                                                \
    }
#if defined(__AVX512F__)
#define lab_wide_versions(version, name, near, T, half, full)                                    \
    version(name, near, T, c, half, 32) version(name, near, T, d, half, 32)                      \
    version(name, near, T, e, full, 64)
#elif defined(__AVX__)
#define lab_wide_versions(version, name, near, T, half, full)                                    \
    version(name, near, T, c, half, 32) version(name, near, T, d, half, 32)
#else
#define lab_wide_versions(version, name, near, T, half, full)
#endif
#define lab_vector_function(version, name, operands, near, T, least, half, full)                 \
    extern "C" __attribute__((simd("notinbranch"))) T name operands;                             \
    template <class... X> static inline T lab_any_##name(X... x) { return __builtin_##name(x...); } \
    template <class X, class... Y> __attribute__((cold, noinline, optimize("no-tree-vectorize"))) \
    static X lab_one_by_one_##name(X x, Y... y) {                                                \
        const int lanes = sizeof(X) / sizeof(T);                                                 \
        for (int k = 0; k < lanes; k++) x[k] = __builtin_##name(x[k], y[k]...);                  \
        return x;                                                                                \
    }                                                                                            \
    version(name, near, T, b, least, 16) lab_wide_versions(version, name, near, T, half, full)
#define lab_angle_function(name, near)                                                           \
    lab_vector_function(lab_angle_version, name, (float), near, float, 4, 8, 16)
#define lab_double_angle_function(name, near)                                                    \
    lab_vector_function(lab_angle_version, name, (double), near, double, 2, 4, 8)
#define lab_quotient_function(name, near)                                                        \
    lab_vector_function(lab_quotient_version, name, (float, float), near, float, 4, 8, 16)
#define lab_double_quotient_function(name, near)                                                 \
    lab_vector_function(lab_quotient_version, name, (double, double), near, double, 2, 4, 8)
#else
#define lab_angle_function(name, near)                                                           \
    static inline float lab_any_##name(float x) {                                                \
        return lab_abs<float>(x) < 131072.0f ? near(x) : lab_libm(name)(x);                      \
    }
#define lab_double_angle_function(name, near)                                                    \
    static inline double lab_any_##name(double x) {                                              \
        return lab_abs<double>(x) < 1073741824.0 ? near(x) : lab_libm(name)(x);                  \
    }
#define lab_quotient_function(name, near)                                                        \
    static inline float lab_any_##name(float x, float y) {                                       \
        return lab_abs<float>(x / y) < 131072.0f ? near(x, y) : lab_far_##name(x, y);            \
    }
#define lab_double_quotient_function(name, near)                                                 \
    static inline double lab_any_##name(double x, double y) {                                    \
        return lab_abs<double>(x / y) < 1073741824.0 ? near(x, y) : lab_far_##name(x, y);        \
    }
#endif

//@ lab_less_half_turns
// x - n * pi * unit for |x| < 2**17, where n is x / (pi * unit) rounded to a multiple of 1/2, and
// the unit is 1 or 1/2.  Keeps -0.
static inline float lab_less_half_turns(float x, float n, float unit) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    // Three parts of pi with 24 bits each; the first difference is exact.
    float r = lab_fused(n, -1.5099579e-7f * unit, lab_fused(n, -3.1415925f * unit, x));
    return lab_fused(n, -1.0780605e-14f * unit, r);
#else
    double turns = n * unit;
    return (float)((x - turns * 3.1415926534682512) - turns * 1.2154201013012384e-10);
#endif
}

//@ lab_half_wave
// sin(r) for |r| <= pi/2, with the opposite sign if the last bit of t is set.
static inline float lab_half_wave(float r, float t) {
    float z = r * r, q = lab_fused(2.597958e-6f, z, -1.9805777e-4f);
    q = lab_fused(lab_fused(q, z, 8.332995e-3f), z, -0.16666654f);
    uint32_t y = lab_bitcast<uint32_t>(lab_fused(q, z * r, r));
    y |= lab_bitcast<uint32_t>(r) & 0x80000000u;  // keeps -0
    return lab_bitcast<float>(y ^ (lab_bitcast<uint32_t>(t) << 31));
}

//@ lab_sin
// Adding a number so large that no fraction fits rounds x / pi to an integer.
static inline float lab_near_sin(float x) {
    float t = lab_fused(x, 0.318309886f, 12582912.0f);
    return lab_half_wave(lab_less_half_turns(x, t - 12582912.0f, 1.0f), t);
}
lab_angle_function(sinf, lab_near_sin)
template <class T> static inline T lab_sin(T x);
template <> inline float lab_sin<float>(float x) { return lab_any_sinf(x); }

//@ lab_near_cos
static inline float lab_near_cos(float x) {
    float t = lab_fused(x, 0.318309886f, 0.5f) + 12582912.0f;
    return lab_half_wave(lab_less_half_turns(x, (t - 12582912.0f) - 0.5f, 1.0f), t);
}

//@ lab_cos
// Takes |x| with integer operations; otherwise GCC merges sin(x) and cos(x) into one call (sincos),
// which has no vector version.
lab_angle_function(cosf, lab_near_cos)
template <class T> static inline T lab_cos(T x);
template <> inline float lab_cos<float>(float x) {
    return lab_any_cosf(lab_bitcast<float>(lab_bitcast<uint32_t>(x) & 0x7fffffffu));
}

//@ lab_tan
// tan(r) = r / q, where a polynomial approximates q = r / tan(r); -q / r after an odd number of
// right angles.
static inline float lab_near_tan(float x) {
    float t = lab_fused(x, 0.636619772f, 12582912.0f);
    float r = lab_less_half_turns(x, t - 12582912.0f, 0.5f), z = r * r;
    float q = lab_fused(-2.4819534e-4f, z, -2.0962798e-3f);
    q = lab_fused(q, z, -2.2226537e-2f);
    q = lab_fused(q, z, -0.33333305f);
    q = lab_fused(q, z, 1.0f);
    bool odd = lab_bitcast<uint32_t>(t) & 1;
    return (odd ? -q : r) / (odd ? r : q);
}
lab_angle_function(tanf, lab_near_tan)
template <class T> static inline T lab_tan(T x);
template <> inline float lab_tan<float>(float x) { return lab_any_tanf(x); }

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

//@ lab_acos
template <class T> static inline T lab_acos(T x);
template <> inline float lab_acos<float>(float x) {
    float a = lab_abs<float>(x), t = a > 0.5f ? lab_sqrt<float>(0.5f - 0.5f * a) : x;
    float r = lab_asin_part(t);
    float far = x > 0 ? 2.0f * r : 3.14159274f - (2.0f * r + 8.74227766e-8f);
    return a > 0.5f ? far : 1.57079637f - (r + 4.37113883e-8f);
}

//@ lab_float_fmod lab_near_fmod
// Subtracts the integer multiple of y at once, with one rounding; if the quotient was rounded up to
// an integer, y is added again.  Large quotients are computed in double: 52 bits of the quotient in
// each step, and six steps are enough for any two floats.
template <class T> static inline T lab_float_fmod(T x, T y);
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
template <class T> static inline T lab_near_fmod(T x, T y) {
    T a = lab_abs<T>(x), b = lab_abs<T>(y);
    T rest = lab_fused(-lab_trunc<T>(lab_abs<T>(x / y)), b, a);
    rest = rest < 0 ? rest + b : rest;
    return lab_copysign<T>(b - b == 0 ? rest : a, x);
}
static inline float lab_far_fmodf(float x, float y) {
    double rest = lab_abs<float>(x), b = lab_abs<float>(y), inverse = 1.0 / b;
#define LAB_STEP rest = __builtin_fma(-__builtin_trunc(rest * inverse), b, rest);
    LAB_STEP LAB_STEP LAB_STEP LAB_STEP LAB_STEP LAB_STEP
#undef LAB_STEP
    rest = rest < 0 ? rest + b : rest;
    rest = rest >= b ? rest - b : rest;
    float result = lab_copysign<float>((float)rest, x);
    return (b == lab_inf) & (x - x == 0) ? x : result;
}
lab_quotient_function(fmodf, lab_near_fmod<float>)
template <> inline float lab_float_fmod<float>(float x, float y) { return lab_any_fmodf(x, y); }
#else
template <> inline float lab_float_fmod<float>(float x, float y) { return lab_libm(fmodf)(x, y); }
#endif
