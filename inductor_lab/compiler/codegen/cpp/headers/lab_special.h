// Powers, the error function, and the gamma function.

//@ lab_hypot
template <class T> static inline T lab_hypot(T x, T y);
template <> inline float lab_hypot<float>(float x, float y) {
    double a = x, b = y;
    float result = (float)lab_sqrt<double>(a * a + b * b);
    return (lab_abs<float>(x) == lab_inff) | (lab_abs<float>(y) == lab_inff) ? lab_inff : result;
}

//@ lab_hypot<double>
// The larger operand times a square root of at most 2, so that intermediate results do not overflow.
template <> inline double lab_hypot<double>(double x, double y) {
    double a = lab_abs<double>(x), b = lab_abs<double>(y);
    double large = a < b ? b : a, small = a < b ? a : b;
    double r = large == 0 ? 0.0 : small / large;
    double result = large * lab_sqrt<double>(lab_fused(r, r, 1.0));
    result = (x != x) | (y != y) ? lab_nan : result;
    return (a == lab_inf) | (b == lab_inf) ? lab_inf : result;
}

//@ lab_erf
// 1 - 2**-p, where a polynomial approximates p = -log2(1 - erf |x|) = b * q; 1 for |x| >= 4.
// n is -p rounded to an integer, and the last bits of t are n + 127.
template <class T> static inline T lab_erf(T x);
template <> inline float lab_erf<float>(float x) {
    float a = lab_abs<float>(x), b = a > 4.0f ? 4.0f : a;
    float q = lab_fused(-1.2571523e-5f, b, 1.6350906e-4f);
    q = lab_fused(q, b, -8.9354045e-4f);
    q = lab_fused(q, b, 2.3742747e-3f);
    q = lab_fused(q, b, -2.0536961e-4f);
    q = lab_fused(q, b, -2.7643595e-2f);
    q = lab_fused(q, b, 0.1482795f);
    q = lab_fused(q, b, 0.9184474f);
    q = lab_fused(q, b, 1.627907f);
    float t = lab_fused(-q, b, 12583039.0f), n = t - 12583039.0f, r = lab_fused(-q, b, -n);
    float scale = lab_power_of_two(lab_bitcast<uint32_t>(t));
    return lab_copysign<float>(lab_fused(scale, lab_exp2_slope(r) * r, scale - 1.0f), x);
}

//@ lab_erf<double>
// x times a polynomial for |x| < 1; 1 - 2**-p, as for floats, up to 6; then 1.
template <> inline double lab_erf<double>(double x) {
    double a = lab_abs<double>(x), b = a > 6.0 ? 6.0 : a, z = b * b, v = b - 3.0;
    double near = b * lab_polynomial(z, -7.795898827002142e-10, 1.3720064546777686e-8,
        -1.6208483801871705e-7, 1.6447424703317362e-6, -1.492473690741966e-5,
        1.2055294904839707e-4, -8.548325975389692e-4, 5.2239776071164225e-3,
        -2.686617064323777e-2, 0.11283791670945006, -0.37612638903183543, 1.1283791670955126);
    double p = b * lab_polynomial(v, 8.772623455828384e-18, -1.7151052516432811e-16,
        1.4756980336149268e-15, -7.528661738013543e-15, 2.628913034055415e-14,
        -6.105335706466265e-14, -5.168121860708025e-14, 2.095287566197045e-12,
        -1.859569880301865e-11, 1.1943772279895136e-10, -6.310897645270144e-10,
        2.7735324557877244e-9, -9.234862160603778e-9, 1.117150709350715e-8,
        1.6294692971923192e-7, -2.0316434204073993e-6, 1.6360376906833973e-5,
        -1.1123501681768376e-4, 6.88163873418809e-4, -4.016905878097305e-3,
        2.274381717137071e-2, 1.3129964401262169, 5.155404865731824);
    double sum = 6755399441055744.0 - p, n = sum - 6755399441055744.0;
    double scale = lab_double_power_of_two(lab_whole(sum));
    double rest = lab_exp_rest((-p - n) * 0.6931471805599453);
    return lab_copysign<double>(b < 1.0 ? near : 1.0 - lab_fused(scale, rest, scale), x);
}

//@ lab_exp2_for_pow
// 2**x in double, with the accuracy that a float result needs.
static inline double lab_exp2_for_pow(double x) {
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
    return q * lab_bitcast<double>((n + 1023) << 52);
}

//@ lab_erfc
// exp(-x * x) * t * q(t), where q is a polynomial.  Floats are computed in double too.
template <class T> static inline T lab_erfc(T x);
template <> inline float lab_erfc<float>(float x) {
    double a = lab_abs<float>(x);
    a = a > 10.5 ? 10.5 : a;
    double t = 1.0 / (1.0 + 0.35 * a);
    double q = lab_fused(-0.019833723337, t, 0.157481897194);
    q = lab_fused(q, t, -0.473215607695);
    q = lab_fused(q, t, 0.660894932061);
    q = lab_fused(q, t, -0.495093413434);
    q = lab_fused(q, t, 0.390810268875);
    q = lab_fused(q, t, 0.012909555574);
    q = lab_fused(q, t, 0.18997872926);
    q = lab_fused(q, t, 0.180717152934);
    q = lab_fused(q, t, 0.197901750435);
    q = lab_fused(q, t, 0.197448459566);
    double tail = q * t * lab_exp2_for_pow(a * a * -1.4426950408889634);
    return (float)(x < 0 ? 2.0 - tail : tail);
}
template <> inline double lab_erfc<double>(double x) { return lab_libm(erfc)(x); }

//@ lab_pow lab_pow_special lab_log2_for_pow
// |x|**y = 2**(y * log2 |x|) in double, with the accuracy that a float result needs.
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
// Integers: repeated squaring, which wraps around.  With a negative exponent, only powers of 1 and -1
// are not 0.
template <class T> static inline T lab_pow(T x, T y) {
    if (y < 0) return x == 1 ? 1 : x == (T)-1 ? (T)(y % 2 ? -1 : 1) : 0;
    uint64_t result = 1, base = (uint64_t)x;
    for (uint64_t left = (uint64_t)y; left != 0; left >>= 1) {
        result = left & 1 ? result * base : result;
        base *= base;
    }
    return (T)result;
}
// Cases that the formula does not cover: signs, and results that are exactly 1 or NaN.
template <class T> static inline T lab_pow_special(T x, T y, T result) {
    bool whole = lab_trunc<T>(y) == y, odd = whole & (lab_trunc<T>((T)0.5 * y) * 2 != y);
    result = (lab_signbit<T>(x) & odd) ? -result : result;
    bool undefined = (x < 0) & (x - x == 0) & !whole & (y - y == 0);
    result = undefined ? (T)lab_nan : result;
    bool one = (x == 1) | (y == 0) | ((x == -1) & (y - y != 0) & (y == y));
    return one ? (T)1 : result;
}
template <> inline float lab_pow<float>(float x, float y) {
    double power = y * lab_log2_for_pow(lab_abs<float>(x));
    return lab_pow_special<float>(x, y, (float)lab_exp2_for_pow(power));
}

//@ lab_sum_of_two lab_double_log_for_pow
// An unevaluated sum of two doubles; |low| is less than an ULP of `high`.
struct lab_sum_of_two { double high, low; };
// log(a) with 66 bits: n * log(2) + s * (2 + z * (2/3 + z * q)) with s = f / (2 + f) and z = s * s,
// where a polynomial approximates q.  Everything except q is computed as a sum of two doubles.
static inline lab_sum_of_two lab_double_log_for_pow(double a) {
    lab_parts parts = lab_parts_of(a);
    double n = parts.n, m = parts.m, f = m - 1.0;
    double below = m + 1.0, below_low = m - (below - 1.0), inverse = 1.0 / below;
    double s = f * inverse, s_low = (lab_fused(-s, below, f) - s * below_low) * inverse;
    double z = s * s, z_low = lab_fused(s, s, -z) + 2.0 * s * s_low;
    double q = lab_polynomial(z, 0.11723178623876945, 0.11706236339491159, 0.13334804693847313,
        0.1538459496251843, 0.18181818335392802, 0.22222222221655885, 0.28571428571429364, 0.4) * z;
    double c = 0.6666666666666666 + q, c_low = (0.6666666666666666 - c) + q + 3.700743415417188e-17;
    double w = z * c, w_low = lab_fused(z, c, -w) + z * c_low + z_low * c;
    double u = s * w, u_low = lab_fused(s, w, -u) + s * w_low + s_low * w;
    double t = 2.0 * s + u, t_low = (2.0 * s - t) + u + (u_low + 2.0 * s_low);
    double whole = n * 6.93147180369123816490e-01, sum = whole + t;
    double rest = (whole - sum) + t + lab_fused(n, 1.90821492927058770002e-10, t_low);
    double high = sum + rest;
    return lab_sum_of_two{a > 0 ? a <= 1.7976931348623157e308 ? high : a : a == 0 ? -lab_inf : a,
                          (sum - high) + rest};
}

//@ lab_pow<double>
// |x|**y = exp(y * log |x|); the logarithm needs more digits than the result.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
template <> inline double lab_pow<double>(double x, double y) {
    lab_sum_of_two log = lab_double_log_for_pow(lab_abs<double>(x));
    double power = y * log.high, low = lab_fused(y, log.high, -power) + y * log.low;
    bool ordinary = lab_abs<double>(power) < 746.0;
    double moved = power < -746.0 ? -746.0 : power > 710.0 ? 710.0 : power;
    lab_reduced_double e = lab_double_exp_of(moved, ordinary ? low : 0.0);
    return lab_pow_special<double>(x, y, lab_scaled(e.rest + 1.0, e.n));
}
#else
template <> inline double lab_pow<double>(double x, double y) { return lab_libm(pow)(x, y); }
#endif

//@ lab_rsqrt
template <class T> static inline T lab_rsqrt(T x) { return 1 / lab_sqrt<T>(x); }

//@ lab_square
template <class T> static inline T lab_square(T x) { return (T)(x * x); }

//@ lab_erfinv lab_nearer_erfinv
// Winitzki's approximation for |x|, then two steps of Halley's method in double.  The error of y is
// computed from erf(y) - x, or near 1, where that cancels, from (1 - x) - erfc(y).
static inline double lab_nearer_erfinv(double y, double x) {
    double off = x < 0.5 ? lab_erf<double>(y) - x : (1 - x) - lab_erfc<double>(y);
    off *= 0.88622692545275801 * lab_exp<double>(y * y);
    return y - off / (1 + y * off);
}
template <class T> static inline T lab_erfinv(T x) {
    double v = lab_abs<double>(x), w = lab_log<double>((1 - v) * (1 + v));
    double a = 4.330746750799873 + 0.5 * w;
    double y = lab_sqrt<double>(lab_sqrt<double>(a * a - w * 6.802721088435374) - a);
    y = lab_nearer_erfinv(lab_nearer_erfinv(y, v), v);
    return (T)lab_copysign<double>(v == 1 ? lab_inf : y, x);
}
// Float: x times a polynomial in w = -log(1 - x * x), or in sqrt(w) for large w (Giles, 2010).
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

//@ lab_lgamma
// Floats are computed in double.  For |x| < 8, the asymptotic series is evaluated at |x| + 8, and the
// log of a product is subtracted.  Negative numbers use the reflection formula with |sin(pi * x)|.
// Near the zeros at 1 and 2, it is (x - 1) * (x - 2) times a polynomial.
template <class T> static inline T lab_lgamma(T x);
template <> inline double lab_lgamma<double>(double x) { return lab_libm(lgamma)(x); }
template <> inline float lab_lgamma<float>(float given) {
    double x = given, a = lab_abs<double>(x), t = x - 1.5;
    double near = 0.0 + (x - 1.0) * (x - 2.0) * lab_polynomial(t, -7.096964588059524e-4,
        1.1467306594078323e-3, -1.0332171756250717e-3, 1.7129188687035498e-3,
        -3.2398417331284675e-3, 5.490888505905579e-3, -9.423020920442142e-3, 1.6792936687337195e-2,
        -3.1308575582289715e-2, 6.291154197579409e-2, -0.1459598954354074, 0.48312894977491205);
    double r = a - lab_round<double>(a), s = r * r;
    double sine = lab_abs<double>(r) * lab_polynomial(s, 7.697826768224191e-7,
        -2.1903497074626018e-5, 4.662998161898394e-4, -7.370430505916944e-3, 0.0821458865731029,
        -0.5992645293189447, 2.5501640398773007, -5.167712780049969, 3.141592653589793);
    double first = (a + 1.0) * (a + 7.0), second = first + 5.0, third = first + 8.0;
    double above = first * second * third * (a + 4.0);
    bool small = a < 8.0;
    double up = small ? above : 1.0, z = small ? a + 8.0 : a, inverse = 1.0 / z;
    double product = x < 0 ? 3.141592653589793 * up / (small ? sine : a * sine) : small ? a * up : 1.0;
    double series = inverse * lab_polynomial(inverse * inverse, 6.41025641025641e-3,
        -1.9175269175269176e-3, 8.417508417508417e-4, -5.952380952380953e-4, 7.936507936507937e-4,
        -2.777777777777778e-3, 8.333333333333333e-2);
    double sum = (z - 0.5) * (lab_log<double>(z) - 1.0) + (0.4189385332046727 + series);
    double far = sum - lab_log<double>(product);
    far = x < 0 ? -far : far;
    return (float)(a == lab_inf ? a : lab_abs<double>(t) < 0.625 ? near : far);
}

//@ lab_digamma
// Reflects to positive arguments, applies the recurrence up to 10, then the asymptotic series.
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
