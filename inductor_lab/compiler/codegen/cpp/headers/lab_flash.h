// Attention without a matrix of scores: a block of query rows visits the keys block by block
// (`codegen/attention/cpp_flash.py`).

//@ lab_product
// result[n][r] = sum over k of a[down * n + across * k] * b[k][r], for n < count, k < depth and at
// least the first `rows` numbers r.  If `scale` is given, the old result[n][r] * scale[r] is added.
// Blocks of the result stay in registers.  A number can be a pair of bfloat16 that are next to each
// other along k (uint32_t): one instruction multiplies the pairs and adds both products.
#include <string.h>
#include <type_traits>
#if defined(__AVX512F__) && defined(__GNUC__)
#define LAB_WIDTH 16
#elif defined(__AVX__) && defined(__GNUC__)
#define LAB_WIDTH 8
#elif defined(__GNUC__)
#define LAB_WIDTH 4
#endif
#if defined(LAB_WIDTH)
typedef float lab_vector __attribute__((vector_size(4 * LAB_WIDTH)));
#else
#define LAB_WIDTH 1
typedef float lab_vector;
#endif
#if defined(__AVX512BF16__) && defined(__AVX512F__) && defined(__GNUC__)
#include <immintrin.h>
#define LAB_PAIRS 1
#else
#define LAB_PAIRS 0
#endif
template <class A> static inline lab_vector lab_vector_at(const A* place) {
    lab_vector found;
    memcpy(&found, place, sizeof(found));
    return found;
}
#if defined(__GNUC__) && !defined(__clang__)
#define lab_contracted __attribute__((optimize("fp-contract=fast")))
#else
#define lab_contracted
#endif
template <int R, int N, class A>
lab_contracted static void lab_product_block(float* result, const A* a, int64_t down, int64_t across,
                                             const A* b, int64_t depth, int64_t rows,
                                             const float* scale) {
#if defined(__clang__)
#pragma clang fp contract(fast)
#endif
    constexpr int vectors = R / LAB_WIDTH < 2 ? 1 : 2;
    for (int64_t r = 0; r < rows; r += vectors * LAB_WIDTH) {
        lab_vector sums[N][vectors] = {}, right[vectors];
        for (int64_t k = 0; k < depth; k++) {
            for (int v = 0; v < vectors; v++) right[v] = lab_vector_at(b + R * k + r + v * LAB_WIDTH);
            for (int n = 0; n < N; n++) {
                const A left = a[down * n + across * k];
                for (int v = 0; v < vectors; v++) {
#if LAB_PAIRS
                    if constexpr (!std::is_same<A, float>::value) {
                        const __m512i pair = _mm512_set1_epi32((int)left);
                        sums[n][v] = (lab_vector)_mm512_dpbf16_ps((__m512)sums[n][v], (__m512bh)pair,
                                                                  (__m512bh)right[v]);
                    } else
#endif
                    sums[n][v] += left * right[v];
                }
            }
        }
        for (int v = 0; v < vectors; v++) {
            const int64_t lane = r + v * LAB_WIDTH;
            if (scale) right[v] = lab_vector_at(scale + lane);
            for (int n = 0; n < N; n++) {
                float* place = result + R * n + lane;
                if (scale) sums[n][v] += lab_vector_at(place) * right[v];
                memcpy(place, &sums[n][v], sizeof(lab_vector));
            }
        }
    }
}
template <int R, class A>
static inline void lab_product(float* result, const A* a, int64_t down, int64_t across,
                               const A* b, int64_t count, int64_t depth, int64_t rows,
                               const float* scale) {
    constexpr int block = LAB_WIDTH == 16 ? 8 : 4;
    int64_t n = 0;
    for (; n + block <= count; n += block) {
        lab_product_block<R, block>(result + R * n, a + down * n, down, across, b, depth, rows, scale);
    }
    for (; n < count; n++) {
        lab_product_block<R, 1>(result + R * n, a + down * n, down, across, b, depth, rows, scale);
    }
}

//@ lab_rounded_pairs
#if LAB_PAIRS
// pairs[r] = (low[r], high[r]), rounded to bfloat16
static inline void lab_rounded_pairs(uint32_t* pairs, const float* low, const float* high, int64_t count) {
    for (int64_t r = 0; r < count; r += LAB_WIDTH) {
        const __m512i a = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(low + r)));
        const __m512i b = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(high + r)));
        _mm512_storeu_si512(pairs + r, _mm512_or_si512(a, _mm512_slli_epi32(b, 16)));
    }
}
#endif

//@ lab_is_bfloat16
template <class T> constexpr bool lab_is_bfloat16 = false;
template <> constexpr bool lab_is_bfloat16<lab_bfloat16> = true;

//@ lab_exp_below
// exp(x) for x <= 0 (and NaN), which needs no care about overflow.  Subnormal results become 0.
static inline float lab_exp_below(float x) {
    const float sum = lab_fused(x, 1.44269504f, 12583039.0f), n = sum - 12583039.0f;
    const float r = lab_fused(n, -1.42860677e-6f, lab_fused(n, -0.693145752f, x));
    const float found = lab_exp_factor(r) * lab_power_of_two(lab_bitcast<uint32_t>(sum));
    return x < -87.0f ? 0.0f : found;
}

//@ lab_flash
// R query rows of D numbers visit blocks of C keys; values have E numbers.  The row is the last index
// of each array, so vector lanes run along rows.  products() computes scores[C][R], the user's
// functions change them, and weigh() uses them.
#include <atomic>
template <class T, int R, int C, int D, int E> struct lab_flash {
    // b, h, the first row and column, the last row and column
    int64_t places[6];
    int64_t rows, columns;
    int64_t lanes;  // the rows, up to a whole register
    alignas(64) float queries[D * R];
    alignas(64) float scores[C * R] = {};
    alignas(64) float sums[E * R] = {};
    alignas(64) float largest[R], total[R], shrink[R];
    alignas(64) float wide[sizeof(T) < 4 ? (C > R ? C : R) * (D > E ? D : E) : 1];
    // Products of bfloat16 numbers: pairs along the index that is summed over.
    static constexpr bool paired = LAB_PAIRS && lab_is_bfloat16<T> && D % 2 == 0;
    alignas(64) uint32_t query_pairs[paired ? D / 2 * R : 1];
    alignas(64) uint32_t key_pairs[paired ? C * D / 2 : 1];
    alignas(64) uint32_t weight_pairs[paired ? C / 2 * R : 1];
    alignas(64) uint32_t value_pairs[paired ? C / 2 * E : 1];

    lab_flash(int64_t b, int64_t h, int64_t first, int64_t beyond)
        : places{b, h, first, 0, beyond - 1, 0}, rows(beyond - first < R ? beyond - first : R) {
        lanes = (rows + LAB_WIDTH - 1) / LAB_WIDTH * LAB_WIDTH;
        for (int r = 0; r < R; r++) largest[r] = -lab_inff, total[r] = 0;
    }
    void look(const T* query, int64_t down, int64_t across) {
        if constexpr (paired) {
            if (rows < R) memset(query_pairs, 0, sizeof(query_pairs));
            columns = rows;
            const uint32_t* from = pairs(query, down, across);
            return lab_transpose(query_pairs, R, from, down, rows, D / 2);
        }
        if (rows < R) memset(queries, 0, sizeof(queries));
        columns = rows;
        const float* from = floats(query, down, across, D);
        if (across == 1) return lab_transpose(queries, R, from, down, rows, D);
        for (int64_t r = 0; r < rows; r++) {
            for (int d = 0; d < D; d++) queries[R * d + r] = from[down * r + across * d];
        }
    }
    // Scores of the keys from `first` up to `beyond` (exclusive); they are the current columns.
    void products(const T* key, int64_t down, int64_t across, int64_t first, int64_t beyond) {
        columns = beyond - first < C ? beyond - first : C;
        places[3] = first, places[5] = beyond - 1;
        if constexpr (paired) {
            const uint32_t* keys = pairs(key + down * first, down, across);
            return lab_product<R>(scores, keys, down, 1, query_pairs, columns, D / 2, rows, nullptr);
        }
        const float* keys = floats(key + down * first, down, across, D);
        lab_product<R>(scores, keys, down, across, queries, columns, D, rows, nullptr);
    }
    // Rescales earlier sums to the largest score so far, and adds those of the current columns.
    void weigh(const T* value, int64_t down, int64_t across) {
        alignas(64) float shift[R], top[R], part[R] = {};
        memcpy(top, largest, sizeof(top));
        for (int64_t c = 0; c < columns; c++) {
            #pragma omp simd
            for (int64_t r = 0; r < lanes; r++) {
                const float seen = scores[R * c + r];
                top[r] = seen > top[r] ? seen : top[r];
            }
        }
        #pragma omp simd
        for (int64_t r = 0; r < lanes; r++) {
            shift[r] = top[r] == -lab_inff ? 0 : top[r];
            shrink[r] = lab_exp_below(largest[r] - shift[r]);
            largest[r] = top[r];
        }
        for (int64_t c = 0; c < columns; c++) {
            #pragma omp simd
            for (int64_t r = 0; r < lanes; r++) {
                scores[R * c + r] = lab_exp_below(scores[R * c + r] - shift[r]);
                part[r] += scores[R * c + r];
            }
        }
        #pragma omp simd
        for (int64_t r = 0; r < lanes; r++) total[r] = total[r] * shrink[r] + part[r];
        if constexpr (paired) {
            value += down * places[3];
            for (int64_t c = 0; c < columns; c += 2) {
                const bool last = c + 1 == columns;
                const T *low = value + down * c, *high = low + (last ? 0 : down);
                const uint32_t kept = last ? 0 : 0xffffffffu;
                #pragma omp simd
                for (int64_t e = 0; e < E; e++) {
                    value_pairs[E * (c / 2) + e] = (uint32_t)(uint16_t)low[across * e]
                                                 | ((uint32_t)(uint16_t)high[across * e] << 16 & kept);
                }
                if (last) memset(scores + R * columns, 0, R * sizeof(float));
                lab_rounded_pairs(weight_pairs + R * (c / 2), scores + R * c, scores + R * (c + 1), lanes);
            }
            return lab_product<R>(sums, value_pairs, 1, E, weight_pairs, E, (columns + 1) / 2, rows,
                                       shrink);
        }
        const float* values = floats(value + down * places[3], down, across, E);
        lab_product<R>(sums, values, across, down, scores, E, columns, rows, shrink);
    }
    // A row without visible keys gives 0.
    void finish(T* out, int64_t down, int64_t across) {
        for (int64_t e = 0; e < E; e++) {
            #pragma omp simd
            for (int64_t r = 0; r < lanes; r++) sums[R * e + r] /= total[r] == 0 ? 1 : total[r];
        }
        if constexpr (sizeof(T) == sizeof(float)) {
            if (across == 1) return lab_transpose(out, down, sums, R, E, rows);
            narrow(out, down, across, sums, 1, R);
        } else {
            lab_transpose(wide, E, sums, R, E, rows);
            narrow(out, down, across, wide, E, 1);
        }
    }
    void narrow(T* out, int64_t down, int64_t across, const float* from, int64_t of_row, int64_t of_e) {
        for (int64_t r = 0; r < rows; r++) {
            #pragma omp simd
            for (int64_t e = 0; e < E; e++) {
                out[down * r + across * e] = lab_convert<T>(from[of_row * r + of_e * e]);
            }
        }
    }
    // Logarithms and largest scores, to base 2.
    void statistics(float* logs, int64_t logs_down, float* tops, int64_t tops_down) {
        for (int64_t r = 0; r < rows; r++) {
            const float shift = largest[r] == -lab_inff ? 0 : largest[r];
            logs[logs_down * r] = (shift + lab_log<float>(total[r])) * 1.44269504f;
            tops[tops_down * r] = largest[r] * 1.44269504f;
        }
    }
    // Rows (there are `columns`) as pairs, in place or copied; `down` becomes a number of pairs.
    const uint32_t* pairs(const T* from, int64_t& down, int64_t across) {
        if (across == 1 && down % 2 == 0 && (uintptr_t)from % 4 == 0) {
            down /= 2;
            return (const uint32_t*)from;
        }
        T* copy = (T*)key_pairs;
        for (int64_t c = 0; c < columns; c++)
            for (int d = 0; d < D; d++) copy[D * c + d] = from[down * c + across * d];
        down = D / 2;
        return key_pairs;
    }
    // Converts rows (there are `columns`) to float; updates their strides.
    const float* floats(const float* from, int64_t&, int64_t&, int) { return from; }
    template <class Half>
    const float* floats(const Half* from, int64_t& down, int64_t& across, int width) {
        for (int64_t c = 0; c < columns; c++) {
            #pragma omp simd
            for (int d = 0; d < width; d++) {
                wide[width * c + d] = lab_convert<float>(from[down * c + across * d]);
            }
        }
        down = width, across = 1;
        return wide;
    }
};
