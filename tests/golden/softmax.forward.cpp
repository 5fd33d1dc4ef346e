// amax, div, exp, sub, sum_1
extern "C" LAB_EXPORT int cpp_fused_amax_div_exp_sub_sum_0(const float* in0, float* out0) {
    #pragma omp parallel for
    for (int64_t i0 = 0; i0 < 64; i0++) {
        float row0[1000];
        float acc0 = lab_lowest<float>();
        float max_acc0 = lab_lowest<float>();
        int nan_acc0 = 0;
        #pragma omp simd reduction(| : nan_acc0) reduction(max : max_acc0)
        for (int64_t j0 = 0; j0 < 1000; j0++) {
            float t0 = in0[1000 * i0 + j0];
            max_acc0 = t0 > max_acc0 ? t0 : max_acc0;
            nan_acc0 |= t0 != t0;
        }
        acc0 = lab_maximum<float>(acc0, (nan_acc0 ? lab_nanf : max_acc0));
        float acc1 = 0;
        #pragma omp simd reduction(+ : acc1)
        for (int64_t j0 = 0; j0 < 1000; j0++) {
            float t1 = in0[1000 * i0 + j0];
            float t2 = t1 - acc0;
            float t3 = lab_exp<float>(t2);
            row0[j0] = t3;
            acc1 = acc1 + t3;
        }
        #pragma omp simd
        for (int64_t j0 = 0; j0 < 1000; j0++) {
            float t4 = row0[j0];
            out0[1000 * i0 + j0] = t4 / acc1;
        }
    }
    return 0;
}
