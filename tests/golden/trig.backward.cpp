// add_1, cos, mul, mul_1, mul_2, mul_3, mul_4, mul_5, neg, sin_1
extern "C" LAB_EXPORT int cpp_fused_add_cos_mul_neg_sin_0(const float* in0, const float* in1, float* out0) {
    #pragma omp simd
    for (int64_t i0 = 0; i0 < 1000; i0++) {
        float t0 = in0[i0];
        float t1 = lab_sin<float>(t0);
        float t2 = -t1;
        float t3 = lab_cos<float>(t0);
        float t4 = t3 * 2.0f;
        float t5 = in1[i0];
        float t6 = t5 * t4;
        float t7 = t6 * t2;
        float t8 = t1 * 2.0f;
        float t9 = t5 * t8;
        float t10 = t9 * t3;
        out0[i0] = t7 + t10;
    }
    return 0;
}
