// Trigonometry: Cody and Waite's reduction, then polynomials.

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
