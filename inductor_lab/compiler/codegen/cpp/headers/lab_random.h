// Random numbers: a counter-based generator, Philox4x32-10 (Salmon et al., SC 2011).

//@ lab_philox lab_philox_words
// The counter is the offset, and the key is the seed; low words first.
struct lab_philox_words { uint32_t first, second; };
static inline lab_philox_words lab_philox(int64_t seed, int64_t offset) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)((uint64_t)seed >> 32);
    uint32_t c0 = (uint32_t)offset, c1 = (uint32_t)((uint64_t)offset >> 32), c2 = 0, c3 = 0;
    for (int round = 0; round < 10; round++) {
        uint64_t low = (uint64_t)c0 * 0xd2511f53u, high = (uint64_t)c2 * 0xcd9e8d57u;
        c0 = (uint32_t)(high >> 32) ^ c1 ^ key0;
        c1 = (uint32_t)high;
        c2 = (uint32_t)(low >> 32) ^ c3 ^ key1;
        c3 = (uint32_t)low;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return lab_philox_words{c0, c1};
}

//@ lab_uniform
// Converts a word to a float in [0, 1): removes the sign bit, then scales by almost 2**-31.
static inline float lab_uniform(uint32_t word) {
    int32_t folded = (int32_t)(word >> 31 ? ~word : word);
    return (float)folded * 4.6566127342e-10f;
}

//@ lab_philox_uniform
static inline float lab_philox_uniform(int64_t seed, int64_t offset) {
    return lab_uniform(lab_philox(seed, offset).first);
}

//@ lab_philox_normal
static inline float lab_philox_normal(int64_t seed, int64_t offset) {
    lab_philox_words words = lab_philox(seed, offset);
    float u = lab_uniform(words.first);
    u = u < 1.0e-7f ? 1.0e-7f : u;
    float radius = lab_sqrt<float>(-2.0f * lab_log<float>(u));
    return radius * lab_near_cos(6.2831855f * lab_uniform(words.second));
}

//@ lab_philox_bits
static inline int64_t lab_philox_bits(int64_t seed, int64_t offset) {
    return (int64_t)lab_philox(seed, offset).first;
}
