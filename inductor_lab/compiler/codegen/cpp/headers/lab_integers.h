// Division as Python, C and eager define it.

//@ lab_floordiv lab_remainder lab_truncdiv lab_fmod lab_integer_division
// Division by zero must not trap: it gives the dividend, and the kernel reports the error.  Integers
// of up to 32 bits are divided as doubles, which have vector instructions; the quotient is never
// rounded up to an integer.  Compilers replace a division by a constant by a multiplication.
template <class T> static inline T lab_quotient(T a, T b) {
    bool whole = sizeof(T) > 4 || lab_is_constant(b);
    return whole ? (T)(a / b) : (T)((double)a / (double)b);
}
template <class T> struct lab_integer_division {
    static inline T divisor(T b) { return b == 0 ? (T)1 : b; }
    static inline T trunc(T a, T b) {
        return b == (T)-1 ? (T)(0 - a) : lab_quotient<T>(a, divisor(b));
    }
    static inline T fmod(T a, T b) {
        T by = divisor(b);
        return b == (T)-1 ? (T)0 : (T)(a - lab_quotient<T>(a, by) * by);
    }
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
    static inline T trunc(T a, T b) { return lab_quotient<T>(a, divisor(b)); }
    static inline T fmod(T a, T b) { return (T)(a - trunc(a, b) * divisor(b)); }
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
    // As Python and torch define it: the quotient of an exact multiple is exact.
    static inline T floor(T a, T b) {
        T rest = lab_float_fmod(a, b), quotient = (b == 0 ? a : a - rest) / b;
        T lower = (rest != 0) & ((b < 0) != (rest < 0)) ? quotient - 1 : quotient;
        T whole = lab_floor<T>(lower);
        whole = lower - whole > (T)0.5 ? whole + 1 : whole;
        whole = lower == 0 ? lab_copysign<T>((T)0, a) * lab_copysign<T>((T)1, b) : whole;
        return b == 0 ? quotient : whole;
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
