// Scalar functions for CPU kernels.  The hot ones have no branches, so that compilers can vectorize
// loops that call them.  C++17; GCC, Clang, ICX, MSVC and clang-cl.
#include <stdint.h>
#if defined(_WIN32)
#define LAB_EXPORT __declspec(dllexport)
#else
#define LAB_EXPORT __attribute__((visibility("default")))
#endif

//@ lab_only_calls
// For a function that only calls others.  Optimizing its hundreds of pointers would take GCC seconds.
#if defined(__GNUC__) && !defined(__clang__)
#define lab_only_calls __attribute__((optimize("O0")))
#else
#define lab_only_calls
#endif

//@ lab_is_constant
#if defined(__GNUC__) || defined(__clang__)
#define lab_is_constant(value) __builtin_constant_p(value)
#else
#define lab_is_constant(value) false
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
static const double lab_nan = std::numeric_limits<double>::quiet_NaN();
static const float lab_nanf = std::numeric_limits<float>::quiet_NaN();

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

//@ lab_zero
// Zero, but GCC must not assume so: it keeps some optimizations from changing results.
#if defined(__GNUC__)
__attribute__((used)) static int64_t lab_zero = 0;
#else
static const int64_t lab_zero = 0;
#endif

//@ lab_clamp_index lab_outside
// Returns int64_t, not bool: GCC 12 sums narrower values incorrectly in SIMD loops.
static inline int64_t lab_outside(int64_t index, int64_t size) {
    return (uint64_t)index >= (uint64_t)size;
}
// Without lab_zero, GCC vectorizes this for a bool index so that true becomes -1.
static inline int64_t lab_clamp_index(int64_t index, int64_t size) {
    return ((uint64_t)index < (uint64_t)size ? index : 0) | lab_zero;
}

//@ lab_stream_line
// Copies a cache line with non-temporal stores.  Ordinary stores of a large result would first read
// each line into the cache, and evict data that is still needed.  Other threads see the data after a
// locked instruction of this thread, such as the one in an OpenMP barrier.
#include <string.h>
#if defined(__SSE2__) && defined(__GNUC__)
typedef long long lab_line __attribute__((vector_size(64)));
static inline void lab_stream_line(char* to, const char* from) {
    lab_line line;
    memcpy(&line, from, 64);
#if defined(__clang__)
    __builtin_nontemporal_store(line, (lab_line*)to);
#elif defined(__AVX512F__)
    __builtin_ia32_movntdq512((lab_line*)to, line);
#else
    typedef long long part __attribute__((vector_size(16)));
    part parts[4];
    memcpy(parts, &line, 64);
    for (int k = 0; k < 4; k++) {
        __builtin_ia32_movntdq((part*)to + k, parts[k]);
    }
#endif
}
#else
static inline void lab_stream_line(char* to, const char* from) {
    memcpy(to, from, 64);
}
#endif

//@ lab_stream
// Copies a block of any length with non-temporal stores.
template <class T> static inline void lab_stream(T* result, const T* block, int64_t count) {
    char* to = (char*)result;
    const char* from = (const char*)block;
    int64_t bytes = count * (int64_t)sizeof(T);
    int64_t head = (64 - (int64_t)((uintptr_t)to % 64)) % 64;
    head = head < bytes ? head : bytes;
    int64_t lines = (bytes - head) / 64;
    memcpy(to, from, (size_t)head);
    for (int64_t k = 0; k < lines; k++) {
        lab_stream_line(to + head + 64 * k, from + head + 64 * k);
    }
    memcpy(to + head + 64 * lines, from + head + 64 * lines, (size_t)(bytes - head - 64 * lines));
}

//@ lab_stream_lines
// The same for whole lines that are still in registers.  An unaligned result gets ordinary stores.
template <class T> static inline void lab_stream_lines(T* to, const T* from, int64_t count) {
    int64_t bytes = count * (int64_t)sizeof(T);
    if ((uintptr_t)to % 64) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    for (int64_t k = 0; k < bytes; k += 64) lab_stream_line((char*)to + k, (const char*)from + k);
}

//@ lab_running_sum
// Replaces a block by its running sums, starting from `sum`; returns the last one.
// For types of eight bytes, then for float.
template <class T> static inline T lab_running_sum(T sum, T* block, int64_t count) {
    int64_t k = 0;
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
    typedef T lab_lanes __attribute__((vector_size(64)));
    const lab_lanes zero = {};
    for (; k + 8 <= count; k += 8) {
        lab_lanes a;
        __builtin_memcpy(&a, block + k, 64);
        a += __builtin_shufflevector(a, zero, 8, 0, 1, 2, 3, 4, 5, 6);
        a += __builtin_shufflevector(a, zero, 8, 8, 0, 1, 2, 3, 4, 5);
        a += __builtin_shufflevector(a, zero, 8, 8, 8, 8, 0, 1, 2, 3);
        a += sum;
        __builtin_memcpy(block + k, &a, 64);
        sum = a[7];
    }
#endif
    for (; k < count; k++) block[k] = sum = sum + block[k];
    return sum;
}
static inline float lab_running_sum(float sum, float* block, int64_t count) {
    int64_t k = 0;
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
    typedef float lab_lanes __attribute__((vector_size(64)));
    const lab_lanes zero = {};
    for (; k + 16 <= count; k += 16) {
        lab_lanes a;
        __builtin_memcpy(&a, block + k, 64);
        a += __builtin_shufflevector(a, zero, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
        a += __builtin_shufflevector(a, zero, 16, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);
        a += __builtin_shufflevector(a, zero, 16, 16, 16, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
        a += __builtin_shufflevector(a, zero, 16, 16, 16, 16, 16, 16, 16, 16, 0, 1, 2, 3, 4, 5, 6, 7);
        a += sum;
        __builtin_memcpy(block + k, &a, 64);
        sum = a[15];
    }
#endif
    for (; k < count; k++) block[k] = sum = sum + block[k];
    return sum;
}

//@ lab_fetch
// Prefetches a block that is read soon; an invalid address does no harm.
template <class T> static inline void lab_fetch(const T* from, int64_t count) {
#if defined(__GNUC__)
    const char* start = (const char*)from;
    for (int64_t k = 0; k < count * (int64_t)sizeof(T); k += 64) {
        __builtin_prefetch(start + k, 0, 2);
    }
#else
    (void)from, (void)count;
#endif
}

//@ lab_maximum lab_minimum
// Two selections with one comparison each: GCC does not vectorize chains of a single selection with
// both.  The second tests b, which is often a constant: then the compiler removes the test.
template <class T> static inline T lab_maximum(T a, T b) {
    T larger = b > a ? b : a;
    return b != b ? b : larger;
}
template <class T> static inline T lab_minimum(T a, T b) {
    T smaller = b < a ? b : a;
    return b != b ? b : smaller;
}

//@ lab_argmax_beats lab_argmin_beats
template <class T> static inline bool lab_argmax_beats(T value, T best) {
    return value > best || (value != value && best == best);
}
template <class T> static inline bool lab_argmin_beats(T value, T best) {
    return value < best || (value != value && best == best);
}

//@ lab_argmax_last_beats lab_argmin_last_beats
template <class T> static inline bool lab_argmax_last_beats(T value, T best) {
    return value >= best || value != value;
}
template <class T> static inline bool lab_argmin_last_beats(T value, T best) {
    return value <= best || value != value;
}

//@ lab_half lab_bfloat16
// Enumerations are distinct types, but the vectorizer treats them as plain integers.
enum class lab_half : uint16_t {};
enum class lab_bfloat16 : uint16_t {};

//@ lab_half_to_float lab_float_to_half
static inline float lab_half_to_float(lab_half h) {
    uint32_t bits = (uint32_t)h, sign = (bits & 0x8000u) << 16, rest = (bits & 0x7fffu) << 13;
    // Multiplying by 2**112 converts the exponent to float's bias; subnormals become normal.
    float scaled = lab_bitcast<float>(rest) * 5.192296858534828e33f;
    uint32_t special = rest >= 0x0f800000u ? rest | 0x7f800000u : lab_bitcast<uint32_t>(scaled);
    return lab_bitcast<float>(sign | special);
}
static inline lab_half lab_float_to_half(float x) {
    uint32_t bits = lab_bitcast<uint32_t>(x), magnitude = bits & 0x7fffffffu;
    uint32_t capped = magnitude < 0x47800000u ? magnitude : 0x47800000u;
    uint32_t exponent = capped & 0x7f800000u;
    exponent = exponent > 0x38800000u ? exponent : 0x38800000u;
    // Adding 2**13 times x's power of two rounds x to ten bits, and leaves them in the last bits.
    uint32_t large = exponent + 0x06800000u;
    float sum = lab_bitcast<float>(capped) + lab_bitcast<float>(large);
    uint32_t result = (exponent >> 13) - 0x1c400u + (lab_bitcast<uint32_t>(sum) - large);
    result = magnitude > 0x7f800000u ? 0x7e00u : result;
    return (lab_half)(uint16_t)(result | ((bits >> 16) & 0x8000u));
}

//@ lab_widen lab_narrow
// Convert blocks of float16 to float32 and back, with F16C instructions if they are available.
#if defined(__F16C__) && defined(__GNUC__)
#if defined(__AVX512F__)
#define lab_lanes 16
#define lab_widen_lanes(halves) __builtin_ia32_vcvtph2ps512_mask(halves, lab_floats{}, -1, 4)
#define lab_narrow_lanes(floats) __builtin_ia32_vcvtps2ph512_mask(floats, 0, lab_halves{}, -1)
#else
#define lab_lanes 8
#define lab_widen_lanes(halves) __builtin_ia32_vcvtph2ps256(halves)
#define lab_narrow_lanes(floats) __builtin_ia32_vcvtps2ph256(floats, 0)
#endif
typedef short lab_halves __attribute__((vector_size(2 * lab_lanes)));
typedef float lab_floats __attribute__((vector_size(4 * lab_lanes)));
#endif
static inline void lab_widen(float* to, const lab_half* from, int64_t count) {
    int64_t k = 0;
#if defined(lab_lanes)
    for (; k + lab_lanes <= count; k += lab_lanes) {
        lab_halves given;
        __builtin_memcpy(&given, from + k, sizeof(given));
        lab_floats found = lab_widen_lanes(given);
        __builtin_memcpy(to + k, &found, sizeof(found));
    }
#endif
    for (; k < count; k++) to[k] = lab_half_to_float(from[k]);
}
static inline void lab_narrow(lab_half* to, const float* from, int64_t count) {
    int64_t k = 0;
#if defined(lab_lanes)
    for (; k + lab_lanes <= count; k += lab_lanes) {
        lab_floats given;
        __builtin_memcpy(&given, from + k, sizeof(given));
        lab_halves found = lab_narrow_lanes(given);
        __builtin_memcpy(to + k, &found, sizeof(found));
    }
#endif
    for (; k < count; k++) to[k] = lab_float_to_half(from[k]);
}

//@ lab_bits_of_nan
// Tests integers, not floats: with a float comparison, GCC 13 computes a sum of 64-bit integers in
// the same SIMD loop incorrectly.
static inline bool lab_bits_of_nan(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

//@ lab_bfloat16_to_float lab_float_to_bfloat16
// Without lab_zero, GCC folds a NaN that is then converted to an integer to 0, unlike the CPU.
static inline float lab_bfloat16_to_float(lab_bfloat16 b) {
    return lab_bitcast<float>((uint32_t)b << 16);
}
static inline lab_bfloat16 lab_float_to_bfloat16(float x) {
    uint32_t bits = lab_bitcast<uint32_t>(x), nan = 0x7fc0u | (uint32_t)lab_zero;
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return (lab_bfloat16)(uint16_t)(lab_bits_of_nan(bits) ? nan : rounded);
}

//@ lab_convert
#include <type_traits>
template <class T> static inline T lab_widened(T x) { return x; }
static inline float lab_widened(lab_half x) { return lab_half_to_float(x); }
static inline float lab_widened(lab_bfloat16 x) { return lab_bfloat16_to_float(x); }
// lab_hidden keeps GCC 12 from converting constants itself: out of range, its results differ from
// the CPU's.  lab_zero in lab_whole keeps GCC from replacing (float)(int)x by trunc(x).
static inline float lab_hidden(float x) {
    return lab_bitcast<float>(lab_bitcast<int32_t>(x) | (int32_t)lab_zero);
}
static inline double lab_hidden(double x) {
    return lab_bitcast<double>(lab_bitcast<int64_t>(x) | lab_zero);
}
template <class Whole, class From> static inline Whole lab_whole(From x) {
    return (Whole)lab_hidden(x) | (Whole)lab_zero;
}
// In C++, converting a float that is out of range is undefined.  Like torch, this converts through
// int32 or int64: results wrap around, and a float out of their range becomes the lowest number on
// x86.  The upper half of uint64 is converted as an int64, plus 2**63.
template <class To> struct lab_conversion {
    template <class From> static inline To of(From x) {
        constexpr bool whole = std::is_floating_point<From>::value && std::is_integral<To>::value;
        // A float32 of 2**31 or more is a multiple of 256, so its low byte is 0 in any case.
        constexpr bool byte = std::is_same<To, uint8_t>::value && sizeof(From) == 8;
        constexpr bool wide = sizeof(To) == 8 || std::is_same<To, uint32_t>::value || byte;
        typedef typename std::conditional<wide, int64_t, int32_t>::type Whole;
        if constexpr (whole && std::is_same<To, uint64_t>::value) {
            const From half = (From)9223372036854775808.0;
            const bool upper = x >= half;
            const uint64_t rest = (uint64_t)lab_whole<int64_t>(upper ? x - half : x);
            return rest ^ (upper ? (uint64_t)1 << 63 : 0);
        } else if constexpr (whole && !std::is_same<To, bool>::value) {
            return (To)lab_whole<Whole>(x);
        } else {
            return (To)x;
        }
    }
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

//@ lab_round
template <class T> static inline T lab_round(T x);
template <> inline float lab_round<float>(float x) { return lab_libm(rintf)(x); }
template <> inline double lab_round<double>(double x) { return lab_libm(rint)(x); }

//@ lab_copysign
template <class T> static inline T lab_copysign(T x, T y);
template <> inline float lab_copysign<float>(float x, float y) { return lab_libm(copysignf)(x, y); }
template <> inline double lab_copysign<double>(double x, double y) { return lab_libm(copysign)(x, y); }

//@ lab_rounded
// Rounds a float32 to the precision of a 16-bit type; the result is still a float32.
template <class T> static inline float lab_rounded(float x);
template <> inline float lab_rounded<lab_half>(float x) {
    uint32_t exponent = lab_bitcast<uint32_t>(x) & 0x7f800000u;
    exponent = exponent > 0x38800000u ? exponent : 0x38800000u;
    exponent = exponent < 0x47800000u ? exponent : 0x47800000u;
    // Adding 1.5 * 2**13 times x's power of two leaves room for ten bits only.
    float large = lab_bitcast<float>(exponent + 0x06c00000u), rounded = (x + large) - large;
    // Multiplied by 2**112, exactly the numbers that overflow a half become infinite.
    return lab_copysign<float>(rounded * 5.192296858534828e33f * 1.9259299443872359e-34f, x);
}
template <> inline float lab_rounded<lab_bfloat16>(float x) {
    uint32_t bits = lab_bitcast<uint32_t>(x);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) & 0xffff0000u;
    return lab_bitcast<float>(lab_bits_of_nan(bits) ? bits : rounded);
}

//@ lab_difference
// A subtraction that GCC must not combine with a neighbouring addition, which would round differently
// (compiler_workarounds.py).
template <class T> static inline T lab_difference(T x, T y);
template <> inline float lab_difference<float>(float x, float y) {
    return lab_bitcast<float>(lab_bitcast<int32_t>(x - y) | (int32_t)lab_zero);
}
template <> inline double lab_difference<double>(double x, double y) {
    return lab_bitcast<double>(lab_bitcast<int64_t>(x - y) | lab_zero);
}

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

//@ lab_relu
template <class T> static inline T lab_relu(T x) { return x < 0 ? (T)0 : x; }

//@ lab_shift_left lab_shift_right
// A shift by a negative number, or by at least the width, gives 0; to the right, -1 for negative a.
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
