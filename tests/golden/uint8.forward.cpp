// maximum, neg
extern "C" LAB_EXPORT int cpp_fused_maximum_neg_0(const uint8_t* in0, const uint8_t* in1, uint8_t* out0) {
    #pragma omp parallel for
    for (int64_t i0 = 0; i0 < 8390; i0++) {
        #pragma omp simd
        for (int64_t i1 = 0; i1 < 8; i1++) {
            uint8_t t0 = in0[8 * i0 + i1];
            uint8_t t1 = in1[i1];
            uint8_t t2 = (uint8_t)(-t1);
            out0[8 * i0 + i1] = (uint8_t)(lab_maximum<uint8_t>(t0, t2));
        }
    }
    return 0;
}
