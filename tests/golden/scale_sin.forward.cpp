// add, mul, sin
extern "C" LAB_EXPORT int cpp_fused_add_mul_sin_0(const float* in0, float* out0) {
    #pragma omp parallel for
    for (int64_t i0_block = 0; i0_block < 10000000; i0_block += 128) {
        const int64_t i0_end = i0_block + 128 < 10000000 ? i0_block + 128 : 10000000;
        float block_out0[128];
        #pragma omp simd
        for (int64_t i0 = i0_block; i0 < i0_end; i0++) {
            float t0 = in0[i0];
            float t1 = t0 + 1.0f;
            float t2 = t1 * 2.0f;
            block_out0[i0 - i0_block] = lab_sin<float>(t2);
        }
        lab_stream(out0 + i0_block, block_out0, i0_end - i0_block);
    }
    return 0;
}
