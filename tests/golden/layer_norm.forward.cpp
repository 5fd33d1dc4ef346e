// add, add_1, mul, mul_1, rsqrt, sub, var_mean
extern "C" LAB_EXPORT int cpp_fused_add_mul_rsqrt_sub_var_mean_0(const float* in0, const float* in1, const float* in2, float* out0) {
    #pragma omp parallel for
    for (int64_t i0 = 0; i0 < 64; i0++) {
        float acc0 = 0;
        float t0 = in0[256 * i0];
        #pragma omp simd reduction(+ : acc0)
        for (int64_t j0 = 0; j0 < 256; j0++) {
            float t1 = in0[256 * i0 + j0];
            acc0 = acc0 + (t1 - t0);
        }
        float acc1 = 0;
        float t2 = t0 + (acc0 / 256.0f);
        #pragma omp simd reduction(+ : acc1)
        for (int64_t j0 = 0; j0 < 256; j0++) {
            float t3 = in0[256 * i0 + j0];
            acc1 = acc1 + lab_square<float>((t3 - t2));
        }
        float t4 = acc1 / 256.0f;
        float t5 = t4 + 1e-05f;
        float t6 = lab_rsqrt<float>(t5);
        #pragma omp simd
        for (int64_t j0 = 0; j0 < 256; j0++) {
            float t7 = in0[256 * i0 + j0];
            float t8 = t7 - t2;
            float t9 = t8 * t6;
            float t10 = in1[j0];
            float t11 = t9 * t10;
            float t12 = in2[j0];
            out0[256 * i0 + j0] = t11 + t12;
        }
    }
    return 0;
}
