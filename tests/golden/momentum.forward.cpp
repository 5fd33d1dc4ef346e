static int cpp_fused_add_addcmul_full_like_sub_0_part0(const float* in0, const float* in1, const float* in2, float* out0, float* out1) {
    #pragma omp for simd nowait
    for (int64_t i0 = 0; i0 < 60000; i0++) {
        float t0 = in0[i0];
        float t1 = in1[i0];
        float t2 = t1 - t0;
        float t3 = t0 + (0.1f * t2);
        out0[i0] = t3;
        float t4 = in2[i0];
        out1[i0] = t4 + (t3 * (-0.01f));
    }
    return 0;
}

static int cpp_fused_add_addcmul_full_like_sub_0_part1(const float* in0, const float* in1, const float* in2, float* out0, float* out1) {
    #pragma omp simd
    for (int64_t i0 = 0; i0 < 64; i0++) {
        float t0 = in0[i0];
        float t1 = in1[i0];
        float t2 = t1 - t0;
        float t3 = t0 + (0.1f * t2);
        out0[i0] = t3;
        float t4 = in2[i0];
        out1[i0] = t4 + (t3 * (-0.01f));
    }
    return 0;
}

static int cpp_fused_add_addcmul_full_like_sub_0_part2(const float* in0, const float* in1, const float* in2, float* out0, float* out1) {
    #pragma omp simd
    for (int64_t i0 = 0; i0 < 21; i0++) {
        float t0 = in0[i0];
        float t1 = in1[i0];
        float t2 = t1 - t0;
        float t3 = t0 + (0.1f * t2);
        out0[i0] = t3;
        float t4 = in2[i0];
        out1[i0] = t4 + (t3 * (-0.01f));
    }
    return 0;
}

// add, add_1, add_2, add_3, addcmul, addcmul_1, addcmul_2, addcmul_3, full_like, full_like_1, full_like_2, full_like_3, sub, sub_1, sub_2, sub_3
extern "C" lab_only_calls LAB_EXPORT int cpp_fused_add_addcmul_full_like_sub_0(const float* in0, const float* in1, const float* in2, const float* in3, const float* in4, const float* in5, const float* in6, const float* in7, const float* in8, const float* in9, const float* in10, const float* in11, float* out0, float* out1, float* out2, float* out3, float* out4, float* out5, float* out6, float* out7) {
    #pragma omp parallel
    {
        cpp_fused_add_addcmul_full_like_sub_0_part0(in0, in1, in2, out0, out1);
        #pragma omp single nowait
        {
            cpp_fused_add_addcmul_full_like_sub_0_part1(in3, in4, in5, out2, out3);
            cpp_fused_add_addcmul_full_like_sub_0_part2(in6, in7, in8, out4, out5);
            cpp_fused_add_addcmul_full_like_sub_0_part1(in9, in10, in11, out6, out7);
        }
    }
    return 0;
}
