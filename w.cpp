// Scalar functions of inductor_lab's CPU kernels.  They are free of branches where it matters, so that
// compilers turn loops over them into vector code.  C++17; GCC, Clang, ICX, MSVC and clang-cl.
#include <stdint.h>
#if defined(_WIN32)
#define LAB_EXPORT __declspec(dllexport)
#else
#define LAB_EXPORT __attribute__((visibility("default")))
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#include <math.h>
#define lab_libm(name) ::name
#else
#define lab_libm(name) __builtin_##name
#endif

#include <string.h>
template <class To, class From> static inline To lab_bitcast(From value) {
    To result;
    memcpy(&result, &value, sizeof(result));
    return result;
}

template <class T> static inline T lab_abs(T x) { return x < 0 ? (T)(0 - x) : x; }
template <> inline float lab_abs<float>(float x) { return lab_libm(fabsf)(x); }
template <> inline double lab_abs<double>(double x) { return lab_libm(fabs)(x); }

// a * b + c with one rounding where the machine can, with two where it cannot.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
static inline float lab_fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double lab_fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
static inline float lab_fused(float a, float b, float c) { return a * b + c; }
static inline double lab_fused(double a, double b, double c) { return a * b + c; }
#endif

// exp(x) = 2**n * exp(r): n is x / ln 2 rounded, by adding a number so large that no fraction fits.
// The last nine bits of `biased` are n + 254.  From x = 90.4 on n stays, r grows and so does exp(r).
// The bound is one of integers since GCC makes several copies of a chain of choices among floats.
struct lab_reduced_exp { float r; uint32_t biased; };
static inline lab_reduced_exp lab_exp_of(float x) {
    int32_t bits = lab_bitcast<int32_t>(lab_fused(x, 1.44269504f, 12583166.0f));
    bits = bits < 0x4b400180 ? bits : 0x4b400180;
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

// Where exp(x) vanishes x is moved to where both powers are 0: anything between would take subnormal
// numbers, which cost a hundred cycles.  (A softmax with a mask is full of exp(-inf).)
template <class T> static inline T lab_exp(T x);
template <> inline float lab_exp<float>(float x) {
    lab_reduced_exp e = lab_exp_of(x < -104.0f ? -176.0f : x);
    // Two factors, since 2**n alone may overflow or be subnormal where the result is not.
    uint32_t half = e.biased >> 1;
    return lab_exp_factor(e.r) * lab_power_of_two(half) * lab_power_of_two(e.biased - half);
}
template <> inline double lab_exp<double>(double x) {
    bool vanishes = x < -746.0;
    x = vanishes ? 0.0 : x > 710.0 ? 710.0 : x;
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
    double y = p * first * lab_bitcast<double>((uint64_t)(k - half + 1023) << 52);
    return vanishes ? 0.0 : y;
}

// lab_angle_function(sin, near) defines lab_any_sin(x): near(x), or the C library's sin(x) if |x| is
// 2**17 or more, where the reduction needs many more digits of pi.  So rare a case must not take time
// in every lane.  GCC's vector code calls vector versions of sinf, and these are ours, by their names
// in the x86-64 vector ABI: one test for all lanes.  Other compilers see a branch.
#if defined(__x86_64__) && defined(__ELF__) && defined(__GNUC__) && !defined(__clang__)
template <int lanes> struct lab_register {
    typedef float floats __attribute__((vector_size(4 * lanes)));
    typedef int32_t ints __attribute__((vector_size(4 * lanes)));
    // The sign bit of each lane: is its magnitude at least that of 2**17?
    static inline ints far(floats x) { return 0x47ffffff - ((ints)x & 0x7fffffff); }
};
#define lab_any4(signs) __builtin_ia32_movmskps((lab_register<4>::floats)(signs))
#define lab_any8(signs) __builtin_ia32_movmskps256((lab_register<8>::floats)(signs))
#define lab_any16(signs) __builtin_ia32_cmpd512_mask(signs, lab_register<16>::ints{}, 1, -1)
#define lab_vector_version(name, near, isa, lanes)                                               \
    extern "C" __attribute__((visibility("hidden"))) lab_register<lanes>::floats                 \
    _ZGV##isa##N##lanes##v_##name##f(lab_register<lanes>::floats x) {                            \
        if (lab_any##lanes(lab_register<lanes>::far(x))) return lab_one_by_one_##name(x);        \
        float given[lanes], found[lanes];                                                        \
        __builtin_memcpy(given, &x, sizeof(x));                                                  \
        _Pragma("omp simd")                                                                      \
        for (int k = 0; k < lanes; k++) found[k] = near(given[k]);                               \
        __builtin_memcpy(&x, found, sizeof(x));                                                  \
        return x;                                                                                \
    }
#if defined(__AVX512F__)
#define lab_wide_versions(name, near)                                                            \
    lab_vector_version(name, near, c, 8) lab_vector_version(name, near, d, 8)                    \
    lab_vector_version(name, near, e, 16)
#elif defined(__AVX__)
#define lab_wide_versions(name, near)                                                            \
    lab_vector_version(name, near, c, 8) lab_vector_version(name, near, d, 8)
#else
#define lab_wide_versions(name, near)
#endif
#define lab_angle_function(name, near)                                                           \
    extern "C" __attribute__((simd("notinbranch"))) float name##f(float);                        \
    static inline float lab_any_##name(float x) { return __builtin_##name##f(x); }               \
    template <class T> __attribute__((cold, noinline, optimize("no-tree-vectorize")))            \
    static T lab_one_by_one_##name(T x) {                                                        \
        for (int k = 0; k < (int)(sizeof(T) / 4); k++) x[k] = __builtin_##name##f(x[k]);         \
        return x;                                                                                \
    }                                                                                            \
    lab_vector_version(name, near, b, 4) lab_wide_versions(name, near)
#else
#define lab_angle_function(name, near)                                                           \
    static inline float lab_any_##name(float x) {                                                \
        return lab_abs<float>(x) < 131072.0f ? near(x) : lab_libm(name##f)(x);                   \
    }
#endif

// x - n * pi for |x| < 2**17, where n is x / pi rounded to a multiple of 1/2.  It is r + low, two
// floats.  -0 stays what it is.
struct lab_rest { float r, low; };
static inline lab_rest lab_less_half_turns(float x, float n) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    // Three parts of pi with 24 bits each; the first difference is exact.
    float r = lab_fused(n, -1.5099579e-7f, lab_fused(n, -3.1415925f, x));
    return lab_rest{r, n * -1.0780605e-14f};
#else
    double r = (x - n * 3.1415926534682512) - n * 1.2154201013012384e-10;
    return lab_rest{(float)r, (float)(r - (float)r)};
#endif
}

// sin(r + low) for |r| <= pi/2, turned over if the last bit of t is set.
static inline float lab_half_wave(lab_rest rest, float t) {
    float r = rest.r + rest.low, z = r * r, q = lab_fused(2.597958e-6f, z, -1.9805777e-4f);
    q = lab_fused(lab_fused(q, z, 8.332995e-3f), z, -0.16666654f);
    uint32_t y = lab_bitcast<uint32_t>(lab_fused(q, z * r, r));
    y |= lab_bitcast<uint32_t>(r) & 0x80000000u;  // -0 stays what it is
    return lab_bitcast<float>(y ^ (lab_bitcast<uint32_t>(t) << 31));
}

// x / pi is rounded by adding a number so large that no fraction fits.
static inline float lab_near_sin(float x) {
    float t = lab_fused(x, 0.318309886f, 12582912.0f);
    return lab_half_wave(lab_less_half_turns(x, t - 12582912.0f), t);
}
lab_angle_function(sin, lab_near_sin)
template <class T> static inline T lab_sin(T x);
template <> inline float lab_sin<float>(float x) { return lab_any_sin(x); }
template <> inline double lab_sin<double>(double x) { return lab_libm(sin)(x); }

static inline float lab_near_cos(float x) {
    float t = lab_fused(x, 0.318309886f, 0.5f) + 12582912.0f;
    return lab_half_wave(lab_less_half_turns(x, (t - 12582912.0f) - 0.5f), t);
}

// Of |x|, in integers: GCC makes one call that has no vector version of sin(x) and cos(x).
lab_angle_function(cos, lab_near_cos)
template <class T> static inline T lab_cos(T x);
template <> inline float lab_cos<float>(float x) {
    return lab_any_cos(lab_bitcast<float>(lab_bitcast<uint32_t>(x) & 0x7fffffffu));
}
template <> inline double lab_cos<double>(double x) { return lab_libm(cos)(x); }

static inline float lab_near_tan(float x) {
    float t = lab_fused(x, 0.636619772f, 12582912.0f);
    lab_rest rest = lab_less_half_turns(x, 0.5f * (t - 12582912.0f));
    float z = rest.r * rest.r, q = lab_fused(4.7193933e-3f, z, -6.0788234e-4f);
    q = lab_fused(q, z, 1.1386615e-2f);
    q = lab_fused(q, z, 2.1069793e-2f);
    q = lab_fused(q, z, 5.410095e-2f);
    q = lab_fused(q, z, 0.13332303f);
    q = lab_fused(q, z, 0.3333336f);
    // y + low is tan(r), and -1 / (y + low) the tangent an odd number of right angles away.
    float more = lab_fused(q, z * rest.r, rest.low), y = rest.r + more, low = (rest.r - y) + more;
    float inverse = -1.0f / y, error = lab_fused(inverse, low, lab_fused(inverse, y, 1.0f));
    return lab_bitcast<uint32_t>(t) & 1 ? lab_fused(error, inverse, inverse) : y;
}
lab_angle_function(tan, lab_near_tan)
template <class T> static inline T lab_tan(T x);
template <> inline float lab_tan<float>(float x) { return lab_any_tan(x); }
template <> inline double lab_tan<double>(double x) { return lab_libm(tan)(x); }
extern "C" LAB_EXPORT void copy(const float* x, float* y, int64_t n) {
#pragma omp simd
for (int64_t i=0;i<n;i++) {float t=0; t= x[i]; y[i]=t;} }
extern "C" LAB_EXPORT void sin(const float* x, float* y, int64_t n) {
#pragma omp simd
for (int64_t i=0;i<n;i++) {float t=0; t= lab_sin<float>(x[i]); y[i]=t;} }
extern "C" LAB_EXPORT void cos(const float* x, float* y, int64_t n) {
#pragma omp simd
for (int64_t i=0;i<n;i++) {float t=0; t= lab_cos<float>(x[i]); y[i]=t;} }
extern "C" LAB_EXPORT void tan(const float* x, float* y, int64_t n) {
#pragma omp simd
for (int64_t i=0;i<n;i++) {float t=0; t= lab_tan<float>(x[i]); y[i]=t;} }
extern "C" LAB_EXPORT void where(const float* x, float* y, int64_t n) {
#pragma omp simd
for (int64_t i=0;i<n;i++) {float t=0; t= x[i]>0?lab_sin<float>(x[i]):x[i]; y[i]=t;} }
extern "C" LAB_EXPORT void mix(const float* x, float* y, int64_t n) {
#pragma omp simd
for (int64_t i=0;i<n;i++) {float t=0; t= lab_exp<float>(x[i])*lab_sin<float>(x[i]); y[i]=t;} }
extern "C" LAB_EXPORT void both(const float* x, float* y, int64_t n) {
#pragma omp simd
for (int64_t i=0;i<n;i++) {float t=0; t= lab_sin<float>(x[i])*lab_cos<float>(x[i]); y[i]=t;} }
extern "C" LAB_EXPORT void w2(const float* x, float* y, int64_t n) {
#pragma omp simd
for (int64_t i=0;i<n;i++) { float t0=x[i]; float t1=0; if (t0 > 0.0f) { t1=lab_sin<float>(t0);} y[i] = t1; } }