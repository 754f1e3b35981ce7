/* What the kernel's loops share: the structs in which arguments come, and the weights of 16 replicates abreast.
 *
 * May not: decide anything. What is computed is written plainly in kernel_reference.py, and the two agree to 1e-12;
 * kernel_fast.py lays out the arguments (the structs below, field for field) and kernel_build.py makes a library of the
 * files here with the C compiler of the machine. Compiled without contraction to fused operations, so that every machine
 * gives the same bits. WEIGHT is uint8_t where all weights are whole numbers up to 255, which is exact, else double.
 */
#ifndef LABCTL_KERNEL_H
#define LABCTL_KERNEL_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define L 16 /* replicates abreast */
#define TWO (2 * L)
#define LANES for (int i = 0; i < L; i++)
#define AHEAD 12 /* rows: what a row will need is fetched so early, as units lie all over memory */
#if defined(__GNUC__)
#define FETCH(p) __builtin_prefetch(p)
#else
#define FETCH(p)
#endif

typedef int64_t whole;
typedef uint64_t word;
typedef WEIGHT weight;

struct walk { /* EventOrder; place, tail_from: see kernel_fast.py */
    whole units, groups, steps, held;
    const whole *unit, *start, *mid, *end, *group;
    const uint8_t *closes;
    const double *width_s, *first_s, *worth;
    const whole *held_unit, *held_from;
    const double *held_rows;
    const whole *rows_from, *tail_from, *place;
};

enum { GIVEN, REDRAW, POOL, SWAP, MIRROR };

struct draw { /* any of kernel.Draw; first: the number of the first replicate */
    whole mode, count, given_rows, sets;
    word first;
    const word *keys;
    const double *given_a, *given_b;
    const whole *counts, *members, *sets_from, *chosen;
};

/* splitmix64 at a counter, as resample.hashes */
static inline word hashed(word key, word replicate, word draw)
{
    word z = key + ((replicate << 24) + draw + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline whole below(word z, whole bound) { return (whole)(((z >> 32) * (word)bound) >> 32); }

/* Add the draws of one replicate, with replacement, to its lane; units are `wide` weights apart. */
static inline void redraw(weight *lane, whole wide, word key, word replicate, const whole *members, whole size,
                          whole draws, whole first)
{
    for (whole j = 0; j < draws; j++)
        lane[members[below(hashed(key, replicate, (word)(first + j)), size)] * wide] += 1;
}

/* Mark the chosen members of every stratum as the first arm. */
static inline void swap(weight *lane, whole wide, word replicate, const struct draw *d, whole *pool)
{
    for (whole s = 0; s < d->sets; s++) {
        whole start = d->sets_from[s], size = d->sets_from[s + 1] - start;
        memcpy(pool, d->members + start, (size_t)size * sizeof *pool);
        for (whole j = 0; j < d->chosen[s]; j++) {
            whole pick = j + below(hashed(d->keys[0], replicate, (word)(start + j)), size - j);
            lane[pool[pick] * wide] = 1;
            pool[pick] = pool[j];
        }
    }
}

/* Weights of one arm or two, [units, arms, lane], for the 16 replicates from number `from` of the draw. */
static inline void fill(weight *w, whole arms, whole *pool, whole from, const struct walk *k, const struct draw *d)
{
    whole wide = arms * L;
    memset(w, 0, (size_t)(k->units * wide) * sizeof *w);
    for (whole lane = 0; lane < L; lane++) {
        word replicate = d->first + (word)(from + lane);
        if (d->mode == GIVEN) {
            whole row = from + lane;
            for (whole u = 0; u < k->units && row < d->given_rows; u++) {
                w[u * wide + lane] = (weight)d->given_a[row * k->units + u];
                if (arms > 1)
                    w[u * wide + L + lane] = (weight)d->given_b[row * k->units + u];
            }
        } else if (d->mode == REDRAW) {
            for (whole s = 0; s < d->sets; s++) {
                whole size = d->sets_from[s + 1] - d->sets_from[s];
                redraw(w + lane, wide, d->keys[s], replicate, d->members + d->sets_from[s], size, size, 0);
            }
        } else if (d->mode == POOL) {
            for (whole side = 0; side < arms; side++)
                for (whole g = 0, drawn = 0; g < k->groups; g++) {
                    whole from_unit = k->held_from[g], draws = d->counts[side * k->groups + g];
                    redraw(w + side * L + lane, wide, d->keys[side], replicate, k->held_unit + from_unit,
                           k->held_from[g + 1] - from_unit, draws, drawn);
                    drawn += draws;
                }
        } else
            swap(w + lane, wide, replicate, d, pool);
    }
    whole half = k->units / 2;
    for (whole u = half; d->mode == MIRROR && u < k->units; u++)
        LANES w[u * wide + i] = 1 - w[(u - half) * wide + i];
    for (whole u = 0; arms > 1 && d->mode != GIVEN && d->mode != POOL && u < k->units; u++)
        LANES w[u * wide + L + i] = d->mode == REDRAW ? 1 : 1 - w[u * wide + i];
}

/* Fetch `count` weights. */
static inline void fetch_weights(const weight *v, whole count)
{
    for (whole i = 0; i < count; i += 64 / (whole)sizeof *v)
        FETCH(v + i);
}

/* Fetch 16 doubles. */
static inline void fetch_lanes(const double *v)
{
    FETCH(v);
    FETCH(v + L / 2);
}

static void *room(whole count, size_t size) { return calloc((size_t)(count > 0 ? count : 1), size); }

/* What a lane holds per group while one arm walks; pull = 1 / left and lead = area / left are the two halves of the
 * jackknife's pull, rise and rise_lead their sums times the hazard. */
struct single { double at[L], ev[L], s[L], sum[L], rise[L], rise_lead[L], pull[L], lead[L]; };

#endif
