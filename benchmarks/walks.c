/* Plain C twins of the suite's kernels: what a careful programmer would write first. Compiled by benchmarks/kernels.py
 * with -O3 -march=native. `scalar_steps` makes one generator call, one comparison and one fresh Lambda per sample. */
#include <math.h>
#include <stdint.h>

static inline uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static inline uint64_t next(uint64_t s[4]) {
    const uint64_t word = rotate(s[0] + s[3], 23) + s[0], shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return word;
}

static inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

static inline void stream(uint64_t s[4], uint64_t seed, uint64_t path) {
    const uint64_t golden = 0x9E3779B97F4A7C15ULL, key = mix(mix(seed + golden) + path * golden);
    for (int j = 0; j < 4; j++) s[j] = mix(key + golden * (uint64_t)(j + 1));
}

/* Algorithm 2, sample by sample, for `runs` paths; returns the number of samples drawn. */
int64_t scalar_steps(uint64_t seed, int64_t runs, double rate, double s_plus, double s_minus, double b, double p_phi,
                     int64_t *tau, int8_t *decision) {
    const uint64_t threshold = (uint64_t)(p_phi * 18446744073709551616.0);
    int64_t total = 0;
    for (int64_t i = 0; i < runs; i++) {
        uint64_t s[4];
        stream(s, seed, (uint64_t)i);
        const double bound = b - log1p(-(double)(next(s) >> 11) * 0x1p-53) / rate;
        int64_t n = 0, k = 0;
        for (;;) {
            k += next(s) < threshold;
            n++;
            const double walk = (double)k * s_plus - (double)(n - k) * s_minus;
            if (walk >= bound) { decision[i] = 1; break; }
            if (walk <= -bound) { decision[i] = 0; break; }
        }
        tau[i] = n;
        total += n;
    }
    return total;
}
