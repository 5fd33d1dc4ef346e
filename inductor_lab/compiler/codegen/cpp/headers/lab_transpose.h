// Kernels transpose blocks of matrices into local arrays and back.

//@ lab_transpose
// to[width * column + row] = from[stride * row + column], in squares of whole registers for elements
// of four, two or one bytes.  Each round interleaves the first half of the rows with the second half;
// log2(side) rounds transpose a square.  The next rows are prefetched, since they are far apart.
#include <string.h>
#if defined(__GNUC__)
#define lab_inlined inline __attribute__((always_inline))
#else
#define lab_inlined inline
#endif
#define LAB_LOW_4 0, 4, 1, 5
#define LAB_HIGH_4 2, 6, 3, 7
#define LAB_LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define LAB_HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LAB_LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define LAB_HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#if defined(__clang__)
#define LAB_INTERLEAVED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define LAB_INTERLEAVED(a, b, ...) __builtin_shuffle(a, b, row{__VA_ARGS__})
#endif
template <int bytes> struct lab_transposed_square { enum { side = 0 }; };
#define LAB_SQUARE(element, SIDE, LOW, HIGH)                                                     \
    template <> struct lab_transposed_square<sizeof(element)> {                                  \
        enum { side = SIDE };                                                                    \
        template <class T>                                                                       \
        static inline void transpose(T* to, int64_t width, const T* from, int64_t stride,        \
                                     const T* last, int64_t down, int64_t across) {              \
            typedef element row __attribute__((vector_size(sizeof(element) * SIDE)));            \
            row rows[SIDE], turned[SIDE];                                                        \
            for (int k = 0; k < SIDE; k++) {                                                     \
                memcpy(&rows[k], k < down - 1 ? from + stride * k : last, sizeof(row));          \
                __builtin_prefetch(from + stride * (k + SIDE));                                  \
            }                                                                                    \
            for (int round = 1; round < SIDE; round *= 2) {                                      \
                for (int k = 0; k < SIDE / 2; k++) {                                             \
                    turned[2 * k] = LAB_INTERLEAVED(rows[k], rows[k + SIDE / 2], LOW);           \
                    turned[2 * k + 1] = LAB_INTERLEAVED(rows[k], rows[k + SIDE / 2], HIGH);      \
                }                                                                                \
                for (int k = 0; k < SIDE; k++) rows[k] = turned[k];                              \
            }                                                                                    \
            for (int k = 0; k < SIDE && k < across; k++) {                                       \
                memcpy(to + width * k, &rows[k], (size_t)down * sizeof(element));                \
            }                                                                                    \
        }                                                                                        \
    };
#if defined(__GNUC__)
#if defined(__AVX512F__)
LAB_SQUARE(int32_t, 16, LAB_LOW_16, LAB_HIGH_16)
#elif defined(__AVX__)
LAB_SQUARE(int32_t, 8, LAB_LOW_8, LAB_HIGH_8)
#else
LAB_SQUARE(int32_t, 4, LAB_LOW_4, LAB_HIGH_4)
#endif
// Registers of 16 bytes: one instruction interleaves two of them.
LAB_SQUARE(int16_t, 8, LAB_LOW_8, LAB_HIGH_8)
LAB_SQUARE(int8_t, 16, LAB_LOW_16, LAB_HIGH_16)
#endif
template <class T>
static lab_inlined void lab_transpose(T* to, int64_t width, const T* from, int64_t stride,
                                      int64_t rows, int64_t columns) {
    typedef lab_transposed_square<sizeof(T)> square;
    constexpr int64_t side = square::side;
    const bool wide = columns >= side, high = rows >= side;
    // Not const: GCC would evaluate lab_is_constant too early, to false.
    bool narrow = high && !wide && columns <= stride && lab_is_constant(columns) && 2 * columns > side;
    bool low = wide && !high && lab_is_constant(rows) && 2 * rows > side;
    if constexpr (side > 0) {
        if ((wide && high) || narrow || low) {
            // One loop over all squares: GCC would unroll two nested loops.  The last squares overlap
            // others.  Rows narrower than a square are read beyond their end, except the last row.
            const int64_t down = low ? rows : side, across = narrow ? columns : side;
            const int64_t many = (columns + across - 1) / across, all = (rows + down - 1) / down * many;
            T end[side] = {};
            if (narrow) memcpy(end, from + stride * (rows - 1), (size_t)columns * sizeof(T));
            for (int64_t number = 0; number < all; number++) {
                const int64_t below = number / many * down, beside = number % many * across;
                const int64_t row = below < rows - down ? below : rows - down;
                const int64_t column = beside < columns - across ? beside : columns - across;
                const T* start = from + stride * row + column;
                const T* last = narrow && row == rows - down ? end : start + stride * (down - 1);
                square::transpose(to + width * column + row, width, start, stride, last, down,
                                  across);
            }
            return;
        }
    }
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t column = 0; column < columns; column++) {
            to[width * column + row] = from[stride * row + column];
        }
    }
}
