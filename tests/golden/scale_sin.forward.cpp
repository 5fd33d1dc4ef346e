// add, mul, sin
extern "C" LAB_EXPORT int cpp_fused_add_mul_sin_0(const float* in0, float* out0) {
    #pragma omp parallel for simd
    for (int64_t i0 = 0; i0 < 10000000; i0++) {
        float t0 = in0[i0];
        float t1 = t0 + 1.0f;
        float t2 = t1 * 2.0f;
        out0[i0] = lab_sin<float>(t2);
    }
    return 0;
}
