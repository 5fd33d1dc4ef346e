// Matrix products with a packed weight: result = x weight^T + bias, in float32.
//
// A weight of N rows is packed in panels of `columns` rows, whose elements for one k are adjacent.
// A tile of the result, `rows` x `columns`, stays in registers while k runs: for each k a row of the
// panel is loaded once, and multiplied by one element of each row of x.
//
//             panel: k          One task is a panel and a block of rows of x.  Threads take tasks when
//             columns           they are free, so a thread that shares its processor gets fewer.
//      x    [ k ........ ]      A part of the panel, `depth` deep, stays in the cache while all tiles
//    rows   [ tile       ]      of the block are computed with it.

//@ lab_panel
#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
struct lab_panel {
    typedef __m512 vector;
    enum { lanes = 16, vectors = 4, rows = 6 };
    static inline vector all(float x) { return _mm512_set1_ps(x); }
    static inline vector load(const float* from) { return _mm512_loadu_ps(from); }
    static inline void store(float* to, vector x) { _mm512_storeu_ps(to, x); }
    static inline vector fma(vector a, vector b, vector c) { return _mm512_fmadd_ps(a, b, c); }
    enum { columns = lanes * vectors, depth = 384, known = 1 };
};
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
struct lab_panel {
    typedef __m256 vector;
    enum { lanes = 8, vectors = 2, rows = 6 };
    static inline vector all(float x) { return _mm256_set1_ps(x); }
    static inline vector load(const float* from) { return _mm256_loadu_ps(from); }
    static inline void store(float* to, vector x) { _mm256_storeu_ps(to, x); }
    static inline vector fma(vector a, vector b, vector c) { return _mm256_fmadd_ps(a, b, c); }
    enum { columns = lanes * vectors, depth = 512, known = 1 };
};
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
struct lab_panel {
    typedef float32x4_t vector;
    enum { lanes = 4, vectors = 4, rows = 6 };
    static inline vector all(float x) { return vdupq_n_f32(x); }
    static inline vector load(const float* from) { return vld1q_f32(from); }
    static inline void store(float* to, vector x) { vst1q_f32(to, x); }
    static inline vector fma(vector a, vector b, vector c) { return vfmaq_f32(c, a, b); }
    enum { columns = lanes * vectors, depth = 512, known = 1 };
};
#else
struct lab_panel {
    typedef float vector;
    enum { lanes = 1, vectors = 1, rows = 1 };
    static inline vector all(float x) { return x; }
    static inline vector load(const float* from) { return *from; }
    static inline void store(float* to, vector x) { *to = x; }
    static inline vector fma(vector a, vector b, vector c) { return a * b + c; }
    enum { columns = 1, depth = 512, known = 0 };
};
#endif

//@ lab_pack_weight
// weight[N][K] -> packed[panel][k][column]; columns behind the last one are zero.
static inline void lab_pack_weight(const float* weight, float* packed, int64_t N, int64_t K) {
    const int64_t width = lab_panel::columns;
    #pragma omp parallel for
    for (int64_t panel = 0; panel < (N + width - 1) / width; panel++) {
        float* to = packed + panel * width * K;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < width; j++) {
                int64_t n = panel * width + j;
                to[k * width + j] = n < N ? weight[n * K + k] : 0.0f;
            }
    }
}

//@ lab_product_tile
// out[row][column] += x[row][k] * panel[k][column]; `begin` holds what the sum begins with, one
// number for each column, or is null: then it begins with what `out` holds.
template <int rows>
static inline void lab_product_tile(const float* x, int64_t x_stride, const float* panel, int64_t K,
                                    const float* begin, float* out, int64_t out_stride) {
    enum { lanes = lab_panel::lanes, vectors = lab_panel::vectors };
    lab_panel::vector sums[rows][vectors];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sums[r][v] = lab_panel::load((begin ? begin : out + r * out_stride) + v * lanes);
    for (int64_t k = 0; k < K; k++) {
        lab_panel::vector across[vectors];
        for (int v = 0; v < vectors; v++)
            across[v] = lab_panel::load(panel + k * lab_panel::columns + v * lanes);
        for (int r = 0; r < rows; r++) {
            lab_panel::vector one = lab_panel::all(x[r * x_stride + k]);
            for (int v = 0; v < vectors; v++)
                sums[r][v] = lab_panel::fma(one, across[v], sums[r][v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            lab_panel::store(out + r * out_stride + v * lanes, sums[r][v]);
}

//@ lab_product_rows
// A tile of `count` rows, at most lab_panel::rows.
template <int rows>
static inline void lab_product_rows(int64_t count, const float* x, int64_t x_stride,
                                    const float* panel, int64_t K, const float* begin, float* out,
                                    int64_t out_stride) {
    if (count == rows)
        lab_product_tile<rows>(x, x_stride, panel, K, begin, out, out_stride);
    else
        lab_product_rows<rows - 1>(count, x, x_stride, panel, K, begin, out, out_stride);
}
template <>
inline void lab_product_rows<0>(int64_t, const float*, int64_t, const float*, int64_t,
                                const float*, float*, int64_t) {}

//@ lab_product
#include <atomic>
// out[M][N] = x[M][K] weight^T + bias; `bias` may be null.  `threads` share the work.
static inline void lab_product(const float* x, int64_t x_stride, const float* packed,
                               const float* bias, float* out, int64_t M, int64_t N, int64_t K,
                               int64_t threads) {
    const int64_t width = lab_panel::columns, tile = lab_panel::rows, depth = lab_panel::depth;
    const int64_t panels = (N + width - 1) / width;
    int64_t block = 22 * tile;  // rows of x that stay in the cache
    while (block > 4 * tile && panels * ((M + block - 1) / block) < 4 * threads) block -= tile;
    const int64_t tasks = panels * ((M + block - 1) / block);
    std::atomic<int64_t> next{0};
    #pragma omp parallel
    for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
        const int64_t n = task % panels * width, first = task / panels * block;
        const int64_t end = first + block < M ? first + block : M;
        float begin[lab_panel::columns] = {}, edge[lab_panel::rows * lab_panel::columns];
        const bool whole = n + width <= N;
        const int64_t count = whole ? width : N - n;
        if (bias) memcpy(begin, bias + n, count * sizeof(float));
        for (int64_t k = 0; k < K; k += depth) {
            const int64_t deep = k + depth < K ? depth : K - k;
            for (int64_t m = first; m < end; m += tile) {
                const int64_t rows = m + tile < end ? tile : end - m;
                float* to = whole ? out + m * N + n : edge;
                if (!whole && k)
                    for (int64_t r = 0; r < rows; r++)
                        memcpy(edge + r * width, out + (m + r) * N + n, count * sizeof(float));
                lab_product_rows<lab_panel::rows>(rows, x + m * x_stride + k, x_stride,
                                                  packed + n * K + k * width, deep,
                                                  k ? nullptr : begin, to, whole ? N : width);
                if (!whole)
                    for (int64_t r = 0; r < rows; r++)
                        memcpy(out + (m + r) * N + n, edge + r * width, count * sizeof(float));
            }
        }
    }
}
