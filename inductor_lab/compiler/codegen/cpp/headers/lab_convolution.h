// Convolutions of channels-last images with a packed weight, in float32, by the tiles of products
// (`lab_product.h`).
//
// The channels of adjacent pixels are adjacent in memory, so a row of the window is one row of
// numbers, its `run`, and so is that row of the weight.  A pixel of the result is a sum of products of
// such rows, one for each row of the window:
//
//     image row:     [pixel 0][pixel 1][pixel 2][pixel 3] ...      each has all channels
//     result 0:      [------- run ----------]
//     result 1:               [------- run ----------]
//
// A tile is `rows` pixels of the result, anywhere, with the kernels of one panel.  At a border a part
// of the window is outside of the image.  For such pixels each column of the window is a product of
// its own, and columns that are outside are left out.

//@ lab_convolution_sizes
#include <stdint.h>
// Images, result and window: `down` and `across` are its steps, `above` and `left` the margins.
struct lab_convolution_sizes {
    int64_t images, height, width, channels;
    int64_t rows, columns, kernels;
    int64_t window_rows, window_columns, down, across, above, left;
};

//@ lab_convolution_tile
// sums[row][kernel] += x[row] panel[kernel], for rows in any places.
template <int rows>
static inline void lab_convolution_tile(const float* const* x, float* const* to, int64_t k, int64_t K,
                                        const float* panel, lab_ahead& ahead) {
    typedef lab_tiles_of_floats T;
    enum { lanes = T::lanes, vectors = T::vectors };
    T::vector sums[rows][vectors] = {};
    const float* from[rows];
    for (int r = 0; r < rows; r++) from[r] = x[r] + k;
    for (k = 0; k < K; k++) {
        ahead.at(k);
        T::vector across[vectors];
        for (int v = 0; v < vectors; v++) across[v] = T::load(panel + (k * vectors + v) * lanes);
        for (int r = 0; r < rows; r++) {
            const T::vector one = T::across(from[r] + k, 1);
            for (int v = 0; v < vectors; v++) sums[r][v] = T::fma(one, across[v], sums[r][v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            T::store(to[r] + v * lanes, T::add(sums[r][v], T::sums(to[r] + v * lanes)));
}

//@ lab_convolution_tiles
// The same for `count` rows, in tiles.
template <int rows> struct lab_convolution_rest {
    template <class... Arguments> static inline void tile(int64_t count, Arguments&&... given) {
        if (count == rows) lab_convolution_tile<rows>(given...);
        else lab_convolution_rest<rows - 1>::tile(count, given...);
    }
};
template <> struct lab_convolution_rest<0> {
    template <class... Arguments> static inline void tile(int64_t, Arguments&&...) {}
};
static inline void lab_convolution_tiles(int64_t count, const float* const* x, float* const* to,
                                         int64_t k, int64_t K, const float* panel,
                                         lab_ahead& ahead) {
    enum { rows = lab_tiles_of_floats::rows };
    for (; count >= rows; count -= rows, x += rows, to += rows)
        lab_convolution_tile<rows>(x, to, k, K, panel, ahead);
    lab_convolution_rest<rows - 1>::tile(count, x, to, k, K, panel, ahead);
}

//@ lab_packed_convolution
#include <string.h>
// out[image][row][column][kernel]; the weight is packed as a matrix [kernel][window row][run].
// `bias` may be null.  `threads` share the work: a task is a block of pixels and a panel.
static inline void lab_packed_convolution(const float* x, const float* packed, const float* bias,
                                          float* out, const lab_convolution_sizes& s,
                                          int64_t threads) {
    typedef lab_tiles_of_floats T;
    enum { width = T::lanes * T::vectors, rows = T::rows, most = 22 * T::rows };
    const int64_t run = s.window_columns * s.channels, parts = (run + T::depth - 1) / T::depth;
    const int64_t panels = (s.kernels + width - 1) / width, deep = run * s.window_rows;
    const int64_t pixels = s.images * s.rows * s.columns;
    // pixels of the result whose images stay in the cache
    const int64_t block = lab_block_rows(most, rows, panels, pixels, threads);
    const bool by_rows = pixels * s.channels >= s.kernels * deep;
    lab_blocks tasks(panels, (pixels + block - 1) / block, by_rows, threads);
    #pragma omp parallel
    for (int64_t task, share = tasks.own(); (task = tasks.take(share)) >= 0;) {
        const int64_t n = tasks.panel(task) * width, first = tasks.block(task) * block;
        const int64_t count = first + block < pixels ? block : pixels - first;
        const int64_t later = tasks.next_panel(share, task);
        const float* panel = packed + n * deep;
        float sums[most][width], begin[width] = {};
        const float* corner[most];  // of each pixel's window
        int64_t top[most], left[most];
        int64_t column = first % s.columns, row = first / s.columns % s.rows;
        int64_t image = first / s.columns / s.rows;
        for (int64_t j = 0; bias && j < width && n + j < s.kernels; j++) begin[j] = bias[n + j];
        for (int64_t i = 0; i < count; i++) {
            memcpy(sums[i], begin, sizeof(begin));
            top[i] = row * s.down - s.above;
            left[i] = column * s.across - s.left;
            corner[i] = x + ((image * s.height + top[i]) * s.width + left[i]) * s.channels;
            if (++column < s.columns) continue;
            column = 0;
            if (++row < s.rows) continue;
            row = 0;
            image++;
        }
        for (int64_t down = 0; down < s.window_rows; down++) {
            const float *inside[most], *border[most], *there[most];
            float *inside_to[most], *border_to[most], *there_to[most];
            int64_t start[most], insides = 0, borders = 0;
            for (int64_t i = 0; i < count; i++) {
                if (top[i] + down < 0 || top[i] + down >= s.height) continue;
                const float* from = corner[i] + down * s.width * s.channels;
                if (left[i] >= 0 && left[i] + s.window_columns <= s.width) {
                    inside[insides] = from;
                    inside_to[insides++] = sums[i];
                } else {
                    start[borders] = left[i];
                    border[borders] = from;
                    border_to[borders++] = sums[i];
                }
            }
            for (int64_t p = 0; p < parts; p++) {
                const int64_t k = p * run / parts, end = (p + 1) * run / parts;
                const bool last = p + 1 == parts && down + 1 == s.window_rows;
                const float* weight = panel + (down * run + k) * width;
                lab_ahead ahead(last ? packed + later * width * deep : weight + (end - k) * width,
                                last && later < 0 ? 0 : (end - k) * width * sizeof(float),
                                (count + rows - 1) / rows, end - k);
                lab_convolution_tiles(insides, inside, inside_to, k, end - k, weight, ahead);
                for (int64_t c = k / s.channels; borders && c * s.channels < end; c++) {
                    const int64_t from = c * s.channels > k ? c * s.channels : k;
                    const int64_t to = (c + 1) * s.channels < end ? (c + 1) * s.channels : end;
                    int64_t found = 0;
                    for (int64_t i = 0; i < borders; i++)
                        if (start[i] + c >= 0 && start[i] + c < s.width) {
                            there[found] = border[i];
                            there_to[found++] = border_to[i];
                        }
                    lab_convolution_tiles(found, there, there_to, from, to - from,
                                          weight + (from - k) * width, ahead);
                }
            }
        }
        const int64_t kernels = n + width <= s.kernels ? width : s.kernels - n;
        for (int64_t i = 0; i < count; i++)
            memcpy(out + (first + i) * s.kernels + n, sums[i], kernels * sizeof(float));
    }
}
