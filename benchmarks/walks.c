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

/* A run in progress: its generator, its bounds, and where its walk is. */
typedef struct {
    uint64_t s[4];
    double up, low, walk;
    int64_t n, k, run;
} Lane;

enum { LANES = 4 };

static inline void begin(Lane *lane, int64_t run, int64_t runs, uint64_t seed, double rate, double b) {
    lane->n = lane->k = 0;
    lane->walk = 0.0;
    lane->run = run < runs ? run : -1; /* beyond the last run a lane idles: no bound stops it */
    stream(lane->s, seed, (uint64_t)run);
    const double u = (double)(next(lane->s) >> 11) * 0x1p-53;
    lane->up = lane->low = run < runs ? b - log1p(-u) / rate : INFINITY;
}

/* Algorithm 2 by binomial jumps, four runs in turn. cut[2^(e+1) + column] and alias are Walker's tables of
 * Binomial(2^e, p), e = 0, ..., sizes - 1, with 2^(e+1) columns each. Returns the number of jumps. */
int64_t binomial_jumps(uint64_t seed, int64_t runs, double rate, double s_plus, double s_minus, double b, int sizes,
                       const uint64_t *cut, const uint16_t *alias, int64_t *tau, int8_t *decision) {
    const double per_up = (1.0 - 1e-9) / s_plus, per_low = (1.0 - 1e-9) / s_minus;
    const double most = (double)((1 << (sizes - 1)) - 1);
    Lane lanes[LANES];
    int64_t started = 0, finished = 0, jumps = 0;
    for (; started < LANES; started++) begin(&lanes[started], started, runs, seed, rate, b);
    while (finished < runs) {
        for (int j = 0; j < LANES; j++) {
            Lane *lane = &lanes[j];
            double away = (lane->up - lane->walk) * per_up;
            const double below = (lane->low + lane->walk) * per_low;
            away = below < away ? below : away;
            away = most < away ? most : away;
            const int e = 63 - __builtin_clzll((uint64_t)((int64_t)away + 1));
            const uint64_t word = next(lane->s), column = word >> (63 - e), place = column + ((uint64_t)2 << e);
            const uint64_t rest = word & (((uint64_t)1 << (63 - e)) - 1);
            const uint64_t kept = -(uint64_t)(rest < cut[place]); /* a mask: a branch would be guessed wrong */
            lane->k += (int64_t)((column & kept) | (alias[place] & ~kept));
            lane->n += (int64_t)1 << e;
            lane->walk = (double)lane->k * s_plus - (double)(lane->n - lane->k) * s_minus;
        }
        jumps += LANES;
        for (int j = 0; j < LANES; j++) {
            Lane *lane = &lanes[j];
            const int null = lane->walk >= lane->up;
            if (!null && lane->walk > -lane->low) continue;
            tau[lane->run] = lane->n;
            decision[lane->run] = (int8_t)null;
            finished++;
            begin(lane, started++, runs, seed, rate, b);
        }
    }
    return jumps;
}
