// add, mul, sin
extern "C" LAB_EXPORT int cpp_fused_add_mul_sin_0(const float* in0, float* out0) {
    #pragma omp parallel for
    for (int64_t i0_block = 0; i0_block < 10000000; i0_block += 64) {
        float block_out0[64];
        #pragma omp simd
        for (int64_t lane = 0; lane < 64; lane++) {
            const int64_t i0 = i0_block + lane;
            float t0 = in0[i0];
            float t1 = t0 + 1.0f;
            float t2 = t1 * 2.0f;
            block_out0[i0 - i0_block] = lab_sin<float>(t2);
        }
        lab_stream_lines(out0 + i0_block, block_out0, 64);
    }
    return 0;
}
