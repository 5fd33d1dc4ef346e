// add, add_1, add_2, mul
extern "C" LAB_EXPORT int cpp_fused_add_mul_0(const float* in0, const float* in1, const float* in2, const float* in3, const float* in4, float* out0) {
    #pragma omp parallel for
    for (int64_t i0_block = 0; i0_block < 8388608; i0_block += 64) {
        float block_out0[64];
        #pragma omp simd
        for (int64_t lane = 0; lane < 64; lane++) {
            const int64_t i0 = i0_block + lane;
            float t0 = in0[i0];
            float t1 = in1[i0];
            float t2 = t0 + t1;
            float t3 = in2[i0];
            float t4 = t2 + t3;
            float t5 = in3[i0];
            float t6 = t4 * t5;
            float t7 = in4[i0];
            block_out0[i0 - i0_block] = t6 + t7;
        }
        lab_stream_lines(out0 + i0_block, block_out0, 64);
    }
    return 0;
}
