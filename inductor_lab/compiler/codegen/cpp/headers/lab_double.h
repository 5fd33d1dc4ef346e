// Functions of doubles: the same methods as for floats, with longer polynomials.

//@ lab_polynomial
// Horner's rule; the coefficient of the highest power of z comes first.
static inline double lab_polynomial(double, double q) { return q; }
template <class... Rest>
static inline double lab_polynomial(double z, double q, double next, Rest... rest) {
    return lab_polynomial(z, lab_fused(q, z, next), rest...);
}

//@ lab_whole lab_double_power_of_two lab_scaled
// Adding 1.5 * 2**52 rounds a double to an integer, which is then in the last bits of the sum.
static inline int64_t lab_whole(double sum) {
    return (int64_t)(lab_bitcast<uint64_t>(sum) - 0x4338000000000000u);
}
static inline double lab_double_power_of_two(int64_t n) {
    return lab_bitcast<double>((uint64_t)(n + 1023) << 52);
}
// x * 2**n in two steps: 2**n may overflow or be subnormal although the result is not.
static inline double lab_scaled(double x, int64_t n) {
    int64_t half = n >> 1;
    return x * lab_double_power_of_two(half) * lab_double_power_of_two(n - half);
}

//@ lab_exp_rest lab_reduced_double lab_double_exp_of
// exp(r) - 1 for |r| <= log(2) / 2
static inline double lab_exp_rest(double r) {
    double q = lab_polynomial(r, 2.0827678078031843e-9, 2.5112106469889583e-8, 2.7557577680724703e-7,
        2.755723466158026e-6, 2.480158693277039e-5, 1.9841269896588398e-4, 1.3888888889111598e-3,
        8.333333333316947e-3, 4.16666666666661e-2, 0.16666666666666682, 0.5);
    return lab_fused(q, r * r, r);
}
// exp(x + low) = 2**n * (1 + rest) for |x| < 1100 and a `low` that is tiny compared with 1.
struct lab_reduced_double { double rest; int64_t n; };
static inline lab_reduced_double lab_double_exp_of(double x, double low) {
    double sum = lab_fused(x, 1.4426950408889634, 6755399441055744.0), n = sum - 6755399441055744.0;
    double r = lab_fused(n, -1.90821492927058770002e-10,
                         lab_fused(n, -6.93147180369123816490e-01, x));
    return lab_reduced_double{lab_exp_rest(r + low), lab_whole(sum)};
}

//@ lab_exp<double>
template <> inline double lab_exp<double>(double x) {
    bool vanishes = x < -746.0;
    lab_reduced_double e = lab_double_exp_of(vanishes ? 0.0 : x > 710.0 ? 710.0 : x, 0.0);
    double y = lab_scaled(e.rest + 1.0, e.n);
    return vanishes ? 0.0 : y;
}

//@ lab_exp2<double>
template <> inline double lab_exp2<double>(double x) {
    bool vanishes = x < -1076.0;
    x = vanishes ? 0.0 : x > 1025.0 ? 1025.0 : x;
    double sum = x + 6755399441055744.0, r = x - (sum - 6755399441055744.0);
    double y = lab_scaled(lab_exp_rest(r * 0.6931471805599453) + 1.0, lab_whole(sum));
    return vanishes ? 0.0 : y;
}

//@ lab_expm1<double>
template <> inline double lab_expm1<double>(double x) {
    lab_reduced_double e = lab_double_exp_of(x < -100.0 ? -100.0 : x > 710.0 ? 710.0 : x, 0.0);
    // (a * (1 + rest) - 1 / b) * b with a * b = 2**n
    int64_t half = e.n >> 1;
    double a = lab_double_power_of_two(half), inverse = lab_double_power_of_two(half - e.n);
    double result = lab_fused(a, e.rest, a - inverse) * lab_double_power_of_two(e.n - half);
    return lab_copysign<double>(result, x);
}

//@ lab_tanh<double>
// h / (h + 1) with 2 * h = exp(2 * |x|) - 1; 1 for |x| >= 20.  The reduction shifts r to mostly
// positive values, since 1 / 2 - |h| would lose digits.
template <> inline double lab_tanh<double>(double x) {
    double a = lab_abs<double>(x), b = a > 20.0 ? 20.0 : a;
    double sum = lab_fused(b - 0.1, 2.8853900817779268, 6755399441055744.0);
    double n = sum - 6755399441055744.0;
    double r = lab_fused(n, -9.5410746463529385001e-11,
                         lab_fused(n, -3.46573590184561908245e-01, b));
    double q = lab_polynomial(r, 5.074205765905614e-6, 2.530325088444771e-5, 1.411622492760935e-4,
        7.054630509751965e-4, 3.174602711683266e-3, 1.2698412768694146e-2, 4.444444444413954e-2,
        0.13333333333308556, 0.3333333333333371, 0.6666666666666669, 1.0);
    double part = lab_fused(q, r * r, r), scale = lab_double_power_of_two(lab_whole(sum));
    double h = lab_fused(scale, part, lab_fused(scale, 0.5, -0.5));
    return lab_copysign<double>(h / (h + 1.0), x);
}

//@ lab_double_half_exp
// exp(x) / 2 for x >= 0
static inline double lab_double_half_exp(double x) {
    lab_reduced_double e = lab_double_exp_of(x > 711.0 ? 711.0 : x, 0.0);
    return lab_scaled(e.rest + 1.0, e.n - 1);
}

//@ lab_sinh<double>
template <> inline double lab_sinh<double>(double x) {
    double a = lab_abs<double>(x), z = x * x, e = lab_double_half_exp(a);
    double q = lab_polynomial(z, 2.8445264169895285e-15, 7.646625361656657e-13,
        1.6059048396350562e-10, 2.505210836405804e-8, 2.755731922404034e-6, 1.9841269841269773e-4,
        8.333333333333333e-3, 0.16666666666666666);
    return (a < 1.0) | (x != x) ? lab_fused(q * z, x, x) : lab_copysign<double>(e - 0.25 / e, x);
}

//@ lab_cosh<double>
template <> inline double lab_cosh<double>(double x) {
    double e = lab_double_half_exp(lab_abs<double>(x));
    return e + 0.25 / e;
}

//@ lab_parts lab_parts_of
// x = 2**n * m with m between sqrt(1/2) and sqrt(2), for x > 0.
struct lab_parts { double n, m; };
static inline lab_parts lab_parts_of(double x) {
    bool subnormal = x < 2.2250738585072014e-308;
    uint64_t bits = lab_bitcast<uint64_t>(subnormal ? x * 18014398509481984.0 : x);
    bits -= 0x3fe6a09e667f3bcdu;
    double n = (double)((int64_t)bits >> 52) - (subnormal ? 54.0 : 0.0);
    return lab_parts{n, lab_bitcast<double>((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu)};
}

//@ lab_reduced_double_log lab_double_log_of lab_double_log_special
// x = 2**n * (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) = f + rest.
struct lab_reduced_double_log { double n, f, rest; };
static inline lab_reduced_double_log lab_double_log_of(double x) {
    lab_parts parts = lab_parts_of(x);
    double f = parts.m - 1.0, s = f / (2.0 + f), z = s * s;
    double q = lab_polynomial(z, 0.14797230449450055, 0.15313932750289794, 0.18183568503267453,
        0.22222198501667856, 0.28571428742992205, 0.3999999999941238, 0.6666666666666735) * z;
    double half_square = 0.5 * f * f;
    return lab_reduced_double_log{parts.n, f, lab_fused(s, half_square + q, -half_square)};
}
static inline double lab_double_log_special(double x, double result) {
    result = x <= 1.7976931348623157e308 ? result : x;
    result = x < 0 ? lab_nan : result;
    return x == 0 ? -lab_inf : result;
}

//@ lab_log<double>
template <> inline double lab_log<double>(double x) {
    lab_reduced_double_log l = lab_double_log_of(x);
    double low = lab_fused(l.n, 1.90821492927058770002e-10, l.rest);
    return lab_double_log_special(x, lab_fused(l.n, 6.93147180369123816490e-01, l.f + low));
}

//@ lab_log2<double>
template <> inline double lab_log2<double>(double x) {
    lab_reduced_double_log l = lab_double_log_of(x);
    double m = l.f + l.rest, low = (l.f - m) + l.rest;
    double scaled = lab_fused(m, 2.0355273740931033e-17, low * 1.4426950408889634);
    return lab_double_log_special(x, l.n + lab_fused(m, 1.4426950408889634, scaled));
}

//@ lab_log10<double>
template <> inline double lab_log10<double>(double x) {
    lab_reduced_double_log l = lab_double_log_of(x);
    double m = l.f + l.rest, low = l.n * 1.1451100898021838e-10;
    double mantissa = lab_fused(m, 0.4342944819032518, low);
    return lab_double_log_special(x, lab_fused(l.n, 0.3010299955494702, mantissa));
}

//@ lab_log1p<double>
template <> inline double lab_log1p<double>(double x) {
    double sum = 1.0 + x, lost = x > 1.0 ? 1.0 - (sum - x) : x - (sum - 1.0);
    lab_reduced_double_log l = lab_double_log_of(sum);
    double low = lab_fused(l.n, 1.90821492927058770002e-10, l.rest + lost / sum);
    double result = lab_double_log_special(sum, lab_fused(l.n, 6.93147180369123816490e-01, l.f + low));
    return lab_copysign<double>(result, x);
}

//@ lab_asinh<double>
template <> inline double lab_asinh<double>(double x) {
    double a = lab_abs<double>(x), b = a > 1.0e9 ? 1.0e9 : a, z = b * b;
    double small = lab_log1p<double>(b + z / (1.0 + lab_sqrt<double>(1.0 + z)));
    double large = lab_log<double>(a) + 0.6931471805599453;
    return lab_copysign<double>((a > 1.0e9) | (x != x) ? large : small, x);
}

//@ lab_acosh<double>
template <> inline double lab_acosh<double>(double x) {
    double b = (x > 1.0e9 ? 1.0e9 : x) - 1.0;
    double small = lab_log1p<double>(b + lab_sqrt<double>(lab_fused(b, b, 2.0 * b)));
    double result = x > 1.0e9 ? lab_log<double>(x) + 0.6931471805599453 : small;
    return x < 1.0 ? lab_nan : result;
}

//@ lab_atanh<double>
template <> inline double lab_atanh<double>(double x) {
    double a = lab_abs<double>(x);
    return lab_copysign<double>(0.5 * lab_log1p<double>(2.0 * a / (1.0 - a)), x);
}

//@ lab_double_less_half_turns lab_double_half_wave
// x - n * pi * unit for |x| < 2**30, where n is x / (pi * unit) rounded to a multiple of 1/2, and
// the unit is 1 or 1/2: three parts of pi with 53 bits each; the first difference is exact.  All
// parts are positive, so this keeps -0.
static inline double lab_double_less_half_turns(double x, double n, double unit) {
    double r = lab_fused(n, -3.141592653589793 * unit, x);
    r = lab_fused(n, -1.224646799147353e-16 * unit, r);
    return lab_fused(n, -2.165713347843828e-32 * unit, r);
}
// sin(r) for |r| <= pi/2, with the opposite sign if the last bit of `sum` is set.  Keeps -0.
static inline double lab_double_half_wave(double r, double sum) {
    double z = r * r;
    double q = lab_polynomial(z, -8.005800095735347e-18, 2.8104662796078604e-15,
        -7.647139028430664e-13, 1.6059043477603977e-10, -2.5052108382372013e-8,
        2.755731922397115e-6, -1.9841269841269806e-4, 8.333333333333333e-3, -0.16666666666666666);
    uint64_t y = lab_bitcast<uint64_t>(lab_fused(q, z * r, r));
    y |= lab_bitcast<uint64_t>(r) & 0x8000000000000000u;
    return lab_bitcast<double>(y ^ (lab_bitcast<uint64_t>(sum) << 63));
}

//@ lab_sin<double>
// Without fused multiply-add, products with the parts of pi would lose their last bits.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
static inline double lab_double_near_sin(double x) {
    double sum = lab_fused(x, 0.3183098861837907, 6755399441055744.0);
    return lab_double_half_wave(lab_double_less_half_turns(x, sum - 6755399441055744.0, 1.0), sum);
}
lab_double_angle_function(sin, lab_double_near_sin)
template <> inline double lab_sin<double>(double x) { return lab_any_sin(x); }
#else
template <> inline double lab_sin<double>(double x) { return lab_libm(sin)(x); }
#endif

//@ lab_cos<double>
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
static inline double lab_double_near_cos(double x) {
    double sum = lab_fused(x, 0.3183098861837907, 0.5) + 6755399441055744.0;
    double n = (sum - 6755399441055744.0) - 0.5;
    return lab_double_half_wave(lab_double_less_half_turns(x, n, 1.0), sum);
}
lab_double_angle_function(cos, lab_double_near_cos)
template <> inline double lab_cos<double>(double x) {
    return lab_any_cos(lab_bitcast<double>(lab_bitcast<uint64_t>(x) & 0x7fffffffffffffffu));
}
#else
template <> inline double lab_cos<double>(double x) { return lab_libm(cos)(x); }
#endif

//@ lab_tan<double>
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
static inline double lab_double_near_tan(double x) {
    double sum = lab_fused(x, 0.6366197723675814, 6755399441055744.0);
    double r = lab_double_less_half_turns(x, sum - 6755399441055744.0, 0.5), z = r * r;
    double q = lab_polynomial(z, -3.288868508013929e-11, -2.127335008160439e-10,
        -2.263903890579498e-9, -2.220772192064273e-8, -2.1926178561933303e-7,
        -2.1644037863833052e-6, -2.1377799221464033e-5, -2.1164021163509893e-4,
        -2.1164021164023195e-3, -2.222222222222222e-2, -0.3333333333333333, 1.0);
    bool odd = lab_bitcast<uint64_t>(sum) & 1;
    return (odd ? -q : r) / (odd ? r : q);
}
lab_double_angle_function(tan, lab_double_near_tan)
template <> inline double lab_tan<double>(double x) { return lab_any_tan(x); }
#else
template <> inline double lab_tan<double>(double x) { return lab_libm(tan)(x); }
#endif

//@ lab_float_fmod<double>
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#if defined(__GNUC__)
__attribute__((cold, noinline))
#endif
static double lab_far_fmod(double x, double y) { return lab_libm(fmod)(x, y); }
lab_double_quotient_function(fmod, lab_near_fmod<double>)
template <> inline double lab_float_fmod<double>(double x, double y) { return lab_any_fmod(x, y); }
#else
template <> inline double lab_float_fmod<double>(double x, double y) { return lab_libm(fmod)(x, y); }
#endif

//@ lab_double_atan_part
// atan(t) for 0 <= t <= 1.
static inline double lab_double_atan_part(double t) {
    double z = t * t;
    double q = lab_polynomial(z, -1.1832505417555692e-5, 1.368724853148122e-4,
        -7.518472526973822e-4, 2.622977891906089e-3, -6.575683344151699e-3, 1.2756172907694298e-2,
        -2.0238706986393514e-2, 2.7567942297344678e-2, -3.3750132001619734e-2,
        3.872640214042632e-2, -4.308119655330471e-2, 4.752086773576656e-2, -5.261265735709454e-2,
        5.882074956371294e-2, -6.666636435777692e-2, 7.692305354678655e-2, -9.090908969557403e-2,
        0.11111111107234799, -0.14285714285648404, 0.19999999999999554, -0.3333333333333333);
    return lab_fused(q * z, t, t);
}

//@ lab_atan<double>
template <> inline double lab_atan<double>(double x) {
    double a = lab_abs<double>(x), r = lab_double_atan_part(a > 1.0 ? 1.0 / a : a);
    r = a > 1.0 ? 1.5707963267948966 - (r - 6.123233995736766e-17) : r;
    return lab_copysign<double>(r, x);
}

//@ lab_atan2<double>
template <> inline double lab_atan2<double>(double y, double x) {
    double a = lab_abs<double>(x), b = lab_abs<double>(y);
    double small = a < b ? a : b, large = a < b ? b : a;
    double t = small == large ? (large == 0 ? 0.0 : 1.0) : small / large;
    double r = lab_double_atan_part(t);
    r = a < b ? 1.5707963267948966 - (r - 6.123233995736766e-17) : r;
    r = lab_bitcast<int64_t>(x) < 0 ? 3.141592653589793 - (r - 1.2246467991473532e-16) : r;
    return (x != x) | (y != y) ? lab_nan : lab_copysign<double>(r, y);
}

//@ lab_double_asin_part
// asin(t) for |t| <= 1/2.
static inline double lab_double_asin_part(double t) {
    double z = t * t;
    double q = lab_polynomial(z, 2.877844261259304e-2, -1.4881409392818066e-2, 1.7419357964884856e-2,
        5.45087818772055e-3, 1.0324318288744113e-2, 1.1478952690257387e-2, 1.3971235301124539e-2,
        1.7352391265909227e-2, 2.2372173002005596e-2, 3.0381944137085216e-2, 4.464285714637338e-2,
        7.499999999998425e-2, 0.16666666666666669);
    return lab_fused(q * z, t, t);
}

//@ lab_asin<double>
template <> inline double lab_asin<double>(double x) {
    double a = lab_abs<double>(x), t = a > 0.5 ? lab_sqrt<double>(0.5 - 0.5 * a) : a;
    double r = lab_double_asin_part(t);
    r = a > 0.5 ? 1.5707963267948966 - (2.0 * r - 6.123233995736766e-17) : r;
    return lab_copysign<double>(r, x);
}

//@ lab_acos<double>
template <> inline double lab_acos<double>(double x) {
    double a = lab_abs<double>(x), t = a > 0.5 ? lab_sqrt<double>(0.5 - 0.5 * a) : x;
    double r = lab_double_asin_part(t);
    double far = x > 0 ? 2.0 * r : 3.141592653589793 - (2.0 * r - 1.2246467991473532e-16);
    return a > 0.5 ? far : 1.5707963267948966 - (r - 6.123233995736766e-17);
}
