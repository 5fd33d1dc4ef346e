// add, cos, mul, mul_1, sin
extern "C" LAB_EXPORT int cpp_fused_add_cos_mul_sin_0(const float* in0, float* out0) {
    #pragma omp simd
    for (int64_t i0 = 0; i0 < 1000; i0++) {
        float t0 = in0[i0];
        float t1 = lab_sin<float>(t0);
        float t2 = t1 * t1;
        float t3 = lab_cos<float>(t0);
        float t4 = t3 * t3;
        out0[i0] = t2 + t4;
    }
    return 0;
}
