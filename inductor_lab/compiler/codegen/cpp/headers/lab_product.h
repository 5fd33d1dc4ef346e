// Matrix products with a packed weight: result = x weight^T + bias, in float32 or bfloat16.
//
// A weight of N rows is packed in panels of `columns` rows, whose elements for one k are adjacent.
// A tile of the result, `rows` x `columns`, stays in registers while k runs: for each k a row of the
// panel is loaded once, and multiplied by one element of each row of x.
//
//             panel: k          One task is a panel and a block of rows of x.  Each thread has a share
//             columns           of the tasks, and helps others when it is done, so a thread that shares
//      x    [ k ........ ]      its processor does less.  A part of the panel, `depth` deep, stays in
//    rows   [ tile       ]      the cache while all tiles of the block are computed with it.  At the
//                               same time the next part is fetched from memory: in a call, a model
//                               reads each weight only once.

//@ lab_tiles_of_floats
// What a tile does with float32.  `known` says whether this processor has vectors for it.
#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
struct lab_tiles_of_floats {
    typedef float element;
    typedef __m512 vector;
    enum { known = 1, lanes = 16, vectors = 4, rows = 6, step = 1, depth = 256 };
    static inline vector across(const float* x, int64_t) { return _mm512_set1_ps(*x); }
    static inline vector load(const float* from) { return _mm512_loadu_ps(from); }
    static inline vector sums(const float* from) { return _mm512_loadu_ps(from); }
    static inline void store(float* to, vector x) { _mm512_storeu_ps(to, x); }
    static inline vector fma(vector a, vector b, vector c) { return _mm512_fmadd_ps(a, b, c); }
    static inline vector add(vector a, vector b) { return _mm512_add_ps(a, b); }
    static inline float number(float x) { return x; }
};
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
struct lab_tiles_of_floats {
    typedef float element;
    typedef __m256 vector;
    enum { known = 1, lanes = 8, vectors = 2, rows = 6, step = 1, depth = 256 };
    static inline vector across(const float* x, int64_t) { return _mm256_set1_ps(*x); }
    static inline vector load(const float* from) { return _mm256_loadu_ps(from); }
    static inline vector sums(const float* from) { return _mm256_loadu_ps(from); }
    static inline void store(float* to, vector x) { _mm256_storeu_ps(to, x); }
    static inline vector fma(vector a, vector b, vector c) { return _mm256_fmadd_ps(a, b, c); }
    static inline vector add(vector a, vector b) { return _mm256_add_ps(a, b); }
    static inline float number(float x) { return x; }
};
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
struct lab_tiles_of_floats {
    typedef float element;
    typedef float32x4_t vector;
    enum { known = 1, lanes = 4, vectors = 4, rows = 6, step = 1, depth = 256 };
    static inline vector across(const float* x, int64_t) { return vdupq_n_f32(*x); }
    static inline vector load(const float* from) { return vld1q_f32(from); }
    static inline vector sums(const float* from) { return vld1q_f32(from); }
    static inline void store(float* to, vector x) { vst1q_f32(to, x); }
    static inline vector fma(vector a, vector b, vector c) { return vfmaq_f32(c, a, b); }
    static inline vector add(vector a, vector b) { return vaddq_f32(a, b); }
    static inline float number(float x) { return x; }
};
#else
struct lab_tiles_of_floats {
    typedef float element;
    typedef float vector;
    enum { known = 0, lanes = 1, vectors = 1, rows = 1, step = 1, depth = 512 };
    static inline vector across(const float* x, int64_t) { return *x; }
    static inline vector load(const float* from) { return *from; }
    static inline vector sums(const float* from) { return *from; }
    static inline void store(float* to, vector x) { *to = x; }
    static inline vector fma(vector a, vector b, vector c) { return a * b + c; }
    static inline vector add(vector a, vector b) { return a + b; }
    static inline float number(float x) { return x; }
};
#endif

//@ lab_tiles_of_bfloats
// The same for bfloat16: an instruction multiplies pairs (two k), and adds them in float32.  The sums
// are rounded once, so a tile is as deep as the product.
#if defined(__AVX512BF16__) && defined(__AVX512F__)
struct lab_tiles_of_bfloats {
    typedef uint16_t element;
    typedef __m512 vector;
    enum { known = 1, lanes = 16, vectors = 4, rows = 6, step = 2, depth = 1 << 30 };
    static inline vector across(const uint16_t* x, int64_t left) {
        int32_t pair = *x;
        if (left > 1) memcpy(&pair, x, sizeof(pair));
        return (vector)_mm512_set1_epi32(pair);
    }
    static inline vector load(const uint16_t* from) { return _mm512_loadu_ps((const float*)from); }
    static inline vector sums(const float* from) { return _mm512_loadu_ps(from); }
    static inline void store(uint16_t* to, vector x) {
        _mm256_storeu_si256((__m256i*)to, (__m256i)_mm512_cvtneps_pbh(x));
    }
    static inline vector fma(vector a, vector b, vector c) {
        return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
    }
    static inline vector add(vector a, vector b) { return _mm512_add_ps(a, b); }
    static inline float number(uint16_t x) {
        const uint32_t bits = (uint32_t)x << 16;
        float value;
        memcpy(&value, &bits, sizeof(value));
        return value;
    }
};
#else
struct lab_tiles_of_bfloats : lab_tiles_of_floats {
    enum { known = 0 };
};
#endif

//@ lab_pack_weight
// weight[N][K] -> packed[panel][k][column], where `step` adjacent k of a column are together.  What
// is behind the last column and the last k is zero.
template <class T>
static inline void lab_pack_weight(const typename T::element* weight, typename T::element* packed,
                                   int64_t N, int64_t K) {
    const int64_t width = T::lanes * T::vectors, step = T::step, deep = (K + step - 1) / step * step;
    #pragma omp parallel for
    for (int64_t panel = 0; panel < (N + width - 1) / width; panel++) {
        typename T::element* to = packed + panel * width * deep;
        for (int64_t k = 0; k < deep; k++)
            for (int64_t j = 0; j < width; j++) {
                const int64_t n = panel * width + j;
                to[(k / step * width + j) * step + k % step] = n < N && k < K ? weight[n * K + k] : 0;
            }
    }
}

//@ lab_ahead
// Memory that is fetched during several tiles: `bytes` of it each time that `every` k are done.
struct lab_ahead {
    enum { every = 16, line = 64 };
    const char* from;
    int64_t bytes;

    // `all` bytes, in equal parts over `tiles` that are `deep`.
    lab_ahead(const void* from, int64_t all, int64_t tiles, int64_t deep) : from((const char*)from) {
        const int64_t times = tiles * ((deep + every - 1) / every);
        bytes = (all + times * line - 1) / (times * line) * line;
    }
    inline void at(int64_t k) {
        if (k % every) return;
        lab_fetch(from, bytes);
        from += bytes;
    }
};

//@ lab_product_tile
// out[row][column] = begin[column] + x[row] panel[column]; `out` is added to it if there is `more`
// in it.  So a long sum is one of shorter sums, which are more exact.
template <class T, int rows>
static inline void lab_product_tile(const typename T::element* x, int64_t x_stride,
                                    const typename T::element* panel, int64_t K, bool more,
                                    const float* begin, typename T::element* out,
                                    int64_t out_stride, lab_ahead& ahead) {
    enum { lanes = T::lanes, vectors = T::vectors, step = T::step };
    typename T::vector sums[rows][vectors];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sums[r][v] = T::sums(begin + v * lanes);
    for (int64_t k = 0; k < K; k += step) {
        ahead.at(k);
        typename T::vector across[vectors];
        for (int v = 0; v < vectors; v++)
            across[v] = T::load(panel + (k / step * vectors + v) * lanes * step);
        for (int r = 0; r < rows; r++) {
            const typename T::vector one = T::across(x + r * x_stride + k, K - k);
            for (int v = 0; v < vectors; v++) sums[r][v] = T::fma(one, across[v], sums[r][v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            typename T::element* to = out + r * out_stride + v * lanes;
            T::store(to, more ? T::add(sums[r][v], T::sums((const float*)to)) : sums[r][v]);
        }
}

//@ lab_product_rows
// A tile of `count` rows, at most `rows`.
template <class T, int rows> struct lab_product_rows {
    template <class... Arguments> static inline void tile(int64_t count, Arguments&&... given) {
        if (count == rows) lab_product_tile<T, rows>(given...);
        else lab_product_rows<T, rows - 1>::tile(count, given...);
    }
};
template <class T> struct lab_product_rows<T, 0> {
    template <class... Arguments> static inline void tile(int64_t, Arguments&&...) {}
};

//@ lab_tasks
#include <atomic>
#include <stdint.h>
#ifdef _OPENMP
extern "C" int omp_get_thread_num();
#endif
// Numbers that threads take: first those of their own share, in order, then those left in others.
struct lab_tasks {
    enum { most = 64 };
    struct alignas(64) share {
        std::atomic<int64_t> next;
        int64_t end;
    };
    share shares[most];
    int64_t count;

    lab_tasks(int64_t tasks, int64_t threads) {
        count = threads < 1 ? 1 : threads > most ? most : threads;
        for (int64_t s = 0; s < count; s++) {
            shares[s].next = tasks * s / count;
            shares[s].end = tasks * (s + 1) / count;
        }
    }
    int64_t own() const {
#ifdef _OPENMP
        return omp_get_thread_num() % count;
#else
        return 0;
#endif
    }
    // The next task of a thread, -1 if there are none; `share` is where it takes them.
    int64_t take(int64_t& share) {
        for (int64_t tried = 0; tried < count; tried++) {
            const int64_t task = shares[share].next.fetch_add(1, std::memory_order_relaxed);
            if (task < shares[share].end) return task;
            share = (share + 1) % count;
        }
        return -1;
    }
};

//@ lab_blocks
// Tasks that are a panel of the weight and a block of rows.  A share is a part of the larger operand,
// rows or panels: a thread finds them in its cache, where it has computed them.
struct lab_blocks : lab_tasks {
    int64_t panels, blocks;
    bool by_rows;

    lab_blocks(int64_t panels, int64_t blocks, bool by_rows, int64_t threads)
        : lab_tasks(panels * blocks, threads), panels(panels), blocks(blocks), by_rows(by_rows) {}
    int64_t panel(int64_t task) const { return by_rows ? task % panels : task / blocks; }
    int64_t block(int64_t task) const { return by_rows ? task / panels : task % blocks; }
    // The panel of the thread's next task, -1 if there is none or if it is the same.
    int64_t next_panel(int64_t share, int64_t task) const {
        const bool is_last = task + 1 >= shares[share].end;
        return is_last || panel(task + 1) == panel(task) ? -1 : panel(task + 1);
    }
};

//@ lab_block_rows
// The rows of a block: `most`, or as few tiles, at least four, as give each thread four tasks.
static inline int64_t lab_block_rows(int64_t most, int64_t tile, int64_t panels, int64_t rows,
                                     int64_t threads) {
    int64_t block = most;
    while (block > 4 * tile && panels * ((rows + block - 1) / block) < 4 * threads) block -= tile;
    return block;
}

//@ lab_packed_product
// out[M][N] = x[M][K] weight^T + bias; `bias` may be null.  `threads` share the work.
template <class T>
static inline void lab_packed_product(const typename T::element* x, int64_t x_stride,
                               const typename T::element* packed, const typename T::element* bias,
                               typename T::element* out, int64_t M, int64_t N, int64_t K,
                               int64_t threads) {
    enum { columns = T::lanes * T::vectors };
    const int64_t width = columns, tile = T::rows, step = T::step, depth = T::depth;
    const int64_t panels = (N + width - 1) / width, deep = (K + step - 1) / step * step;
    const int64_t most = 22 * tile;  // rows of x that stay in the cache
    const int64_t block = lab_block_rows(most, tile, panels, M, threads);
    lab_blocks tasks(panels, (M + block - 1) / block, M >= N, threads);
    #pragma omp parallel
    for (int64_t task, share = tasks.own(); (task = tasks.take(share)) >= 0;) {
        const int64_t n = tasks.panel(task) * width, first = tasks.block(task) * block;
        const int64_t end = first + block < M ? first + block : M;
        const bool whole = n + width <= N;
        const int64_t count = whole ? width : N - n, bytes = count * sizeof(*out);
        float begin[columns] = {};
        const float nothing[columns] = {};
        typename T::element edge[T::rows * columns];
        for (int64_t j = 0; bias && j < count; j++) begin[j] = T::number(bias[n + j]);
        const int64_t tiles = (end - first + tile - 1) / tile;
        const int64_t later = tasks.next_panel(share, task);
        const typename T::element* panel = packed + n * deep;
        for (int64_t k = 0; k < K; k += depth) {
            const int64_t part = k + depth < K ? depth : K - k, size = part * width * sizeof(*out);
            const bool last = k + depth >= K;
            lab_ahead ahead(last ? packed + later * width * deep : panel + (k + depth) * width,
                            last && later < 0 ? 0 : size, tiles, part);
            for (int64_t m = first; m < end; m += tile) {
                const int64_t rows = m + tile < end ? tile : end - m;
                typename T::element* to = whole ? out + m * N + n : edge;
                for (int64_t r = 0; !whole && k && r < rows; r++)
                    memcpy(edge + r * width, out + (m + r) * N + n, bytes);
                lab_product_rows<T, T::rows>::tile(rows, x + m * x_stride + k, x_stride,
                                                   panel + k * width, part, k > 0,
                                                   k ? nothing : begin, to, whole ? N : width, ahead);
                for (int64_t r = 0; !whole && r < rows; r++)
                    memcpy(out + (m + r) * N + n, edge + r * width, bytes);
            }
        }
    }
}

//@ lab_evict
// Removes memory from the caches; nothing on processors other than x86.
#if defined(__SSE2__)
#include <immintrin.h>
#endif
static inline void lab_evict(const void* from, int64_t bytes) {
#if defined(__SSE2__)
    for (int64_t k = 0; k < bytes; k += 64) {
#if defined(__CLFLUSHOPT__)
        _mm_clflushopt((char*)from + k);
#else
        _mm_clflush((const char*)from + k);
#endif
    }
    _mm_mfence();
#else
    (void)from, (void)bytes;
#endif
}
