// add, add_1, add_2, mul
extern "C" LAB_EXPORT int cpp_fused_add_mul_0(const float* in0, const float* in1, const float* in2, const float* in3, const float* in4, float* out0) {
    #pragma omp parallel for simd
    for (int64_t i0 = 0; i0 < 8388608; i0++) {
        float t0 = in0[i0];
        float t1 = in1[i0];
        float t2 = t0 + t1;
        float t3 = in2[i0];
        float t4 = t2 + t3;
        float t5 = in3[i0];
        float t6 = t4 * t5;
        float t7 = in4[i0];
        out0[i0] = t6 + t7;
    }
    return 0;
}
