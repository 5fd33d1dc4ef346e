// add_1, mul, mul_1, rsqrt, sub, var_mean
extern "C" LAB_EXPORT int cpp_fused_add_mul_rsqrt_sub_var_mean_0(const float* in0, const float* in1, const float* in2, float* out0) {
    #pragma omp parallel for
    for (int64_t i0 = 0; i0 < 64; i0++) {
        double acc0 = 0;
        double acc1 = 0;
        float t0 = in0[256 * i0];
        double t1 = (double)t0;
        #pragma omp simd reduction(+ : acc0) reduction(+ : acc1)
        for (int64_t j0 = 0; j0 < 256; j0++) {
            float t2 = in0[256 * i0 + j0];
            double t3 = ((double)t2) - t1;
            acc0 = acc0 + t3;
            acc1 = acc1 + lab_square<double>(t3);
        }
        double t4 = acc0 / 256.0;
        double t5 = lab_maximum<double>(0.0, (acc1 - (acc0 * t4))) / 256.0;
        float t6 = 1.0f / ((float)lab_sqrt<double>((t5 + 1e-05)));
        float t7 = (float)(t1 + t4);
        #pragma omp simd
        for (int64_t j0 = 0; j0 < 256; j0++) {
            float t8 = in0[256 * i0 + j0];
            float t9 = t8 - t7;
            float t10 = t9 * t6;
            float t11 = in1[j0];
            float t12 = t10 * t11;
            float t13 = in2[j0];
            out0[256 * i0 + j0] = t12 + t13;
        }
    }
    return 0;
}
