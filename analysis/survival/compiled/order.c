/* How often one group is first of two, for every replicate: see kernel.OrderProbability. */
#include "kernel.h"

/* What both groups of an order probability share: S now and before the time, what the influence of either hangs on,
 * and the sum so far. */
struct both { double now[2][L], was[2][L], own[2][L], total[L]; };

/* Carry two groups over all steps, summing P(T_0 < T_1) and, per unit, two halves of its influence. Steps of both at
 * one time are taken together (the first closes nothing), so that equal times count half. `s` of a single is a hazard. */
static void walk_order(struct single *x, struct both *restrict m, double *rise, double *lead, const weight *w,
                       const struct walk *k)
{
    whole rows = k->rows_from[k->groups];
    for (whole s = 0, last; s < k->steps; s = last + 1) {
        last = k->closes[s] ? s : s + 1;
        LANES m->was[0][i] = m->now[0][i];
        LANES m->was[1][i] = m->now[1][i];
        for (whole n = s; n <= last; n++) {
            struct single *restrict y = x + k->group[n];
            double *restrict now = m->now[k->group[n]];
            for (whole r = k->start[n]; r < k->end[n] && r + AHEAD < rows; r++) {
                fetch_weights(w + k->unit[r + AHEAD] * L, L);
                fetch_lanes(rise + k->unit[r + AHEAD] * L);
                fetch_lanes(lead + k->unit[r + AHEAD] * L);
            }
            for (whole r = k->start[n]; r < k->mid[n]; r++) {
                const weight *restrict v = w + k->unit[r] * L;
                double *restrict up = rise + k->unit[r] * L, *restrict on = lead + k->unit[r] * L;
                LANES y->at[i] -= v[i];
                LANES up[i] += y->rise[i];
                LANES on[i] += y->rise_lead[i];
            }
            LANES y->ev[i] = 0.0;
            for (whole r = k->mid[n]; r < k->end[n]; r++) {
                const weight *restrict v = w + k->unit[r] * L;
                LANES y->ev[i] += v[i];
            }
            LANES {
                double at = y->at[i], ev = y->ev[i], left = at - ev, hazard = ev / (at > 0.0 ? at : 1.0);
                double pull = (left > 0.0 ? 1.0 : 0.0) / (left > 0.0 ? left : 1.0);
                y->s[i] = hazard;
                y->pull[i] = pull;
                y->rise[i] += pull * hazard;
                y->at[i] = left;
                now[i] *= 1.0 - hazard;
            }
        }
        LANES {
            double step = m->was[0][i] - m->now[0][i], middle = (m->was[1][i] + m->now[1][i]) / 2.0;
            double total = m->total[i] + step * middle;
            m->total[i] = total;
            m->own[0][i] = total + m->now[0][i] * middle;
            m->own[1][i] = total - step * m->now[1][i] / 2.0;
        }
        for (whole n = s; n <= last; n++) {
            struct single *restrict y = x + k->group[n];
            const double *restrict own = m->own[k->group[n]];
            LANES {
                double pulled = y->pull[i] * own[i];
                y->lead[i] = pulled;
                y->rise_lead[i] += pulled * y->s[i];
            }
            for (whole r = k->mid[n]; r < k->end[n]; r++) {
                double *restrict up = rise + k->unit[r] * L, *restrict on = lead + k->unit[r] * L;
                LANES up[i] += y->rise[i] - y->pull[i];
                LANES on[i] += y->rise_lead[i] - y->lead[i];
            }
        }
    }
}

/* Every block of 16 replicates: P(T_0 < T_1) and its clustered jackknife variance, both [count]. */
int order_probabilities(const struct walk *k, const struct draw *d, double *value, double *variance)
{
    weight *w = room(k->units * L, sizeof *w);
    whole *pool = room(k->units, sizeof *pool);
    double *rise = room(k->units * L, sizeof *rise), *lead = room(k->units * L, sizeof *lead);
    int made = w && pool && rise && lead;
    for (whole from = 0; made && from < d->count; from += L) {
        struct single x[2] = {{{0}}};
        struct both m = {{{0}}};
        fill(w, 1, pool, from, k, d);
        memset(rise, 0, (size_t)(k->units * L) * sizeof *rise);
        memset(lead, 0, (size_t)(k->units * L) * sizeof *lead);
        for (whole g = 0; g < 2; g++) {
            for (whole h = k->held_from[g]; h < k->held_from[g + 1]; h++) {
                const weight *restrict v = w + k->held_unit[h] * L;
                LANES x[g].at[i] += k->held_rows[h] * v[i];
            }
            LANES m.now[g][i] = 1.0;
            LANES m.total[i] += x[g].at[i] > 0.0 ? 0.0 : NAN;
        }
        walk_order(x, &m, rise, lead, w, k);
        for (whole g = 0; g < 2; g++)
            for (whole r = k->tail_from[g]; r < k->rows_from[g + 1]; r++) {
                double *restrict up = rise + k->unit[r] * L, *restrict on = lead + k->unit[r] * L;
                LANES up[i] += x[g].rise[i];
                LANES on[i] += x[g].rise_lead[i];
            }
        double total[L], spread[L] = {0};
        LANES total[i] = m.total[i] + m.now[0][i] * m.now[1][i] / 2.0;
        for (whole u = 0; u < k->units; u++)
            LANES {
                double influence = total[i] * rise[u * L + i] - lead[u * L + i];
                spread[i] += w[u * L + i] * influence * influence;
            }
        for (whole i = 0; i < L && from + i < d->count; i++) {
            value[from + i] = total[i];
            variance[from + i] = spread[i];
        }
    }
    free(w);
    free(pool);
    free(rise);
    free(lead);
    return made;
}
