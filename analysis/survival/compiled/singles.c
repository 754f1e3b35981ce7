/* RMST of every group and its clustered jackknife covariance, for every replicate: see kernel.Moments. */
#include "kernel.h"

/* Carry one group over the steps numbered in `order`, summing RMST and, per unit held, two halves of its influence. */
static void walk_single(struct single *restrict x, double *rise, double *lead, const weight *w, const struct walk *k,
                        const whole *order, whole steps)
{
    whole rows = k->rows_from[k->groups];
    for (whole n = 0; n < steps; n++) {
        whole s = order[n];
        LANES x->ev[i] = 0.0;
        for (whole r = k->start[s]; r < k->end[s] && r + AHEAD < rows; r++) {
            fetch_weights(w + k->unit[r + AHEAD] * L, L);
            fetch_lanes(rise + k->place[r + AHEAD] * L);
            fetch_lanes(lead + k->place[r + AHEAD] * L);
        }
        for (whole r = k->start[s]; r < k->mid[s]; r++) {
            const weight *restrict v = w + k->unit[r] * L;
            double rows = k->worth[r], *restrict up = rise + k->place[r] * L, *restrict on = lead + k->place[r] * L;
            LANES x->at[i] -= rows * v[i];
            LANES up[i] += rows * x->rise[i];
            LANES on[i] += rows * x->rise_lead[i];
        }
        for (whole r = k->mid[s]; r < k->end[s]; r++) {
            const weight *restrict v = w + k->unit[r] * L;
            double rows = k->worth[r];
            LANES x->ev[i] += rows * v[i];
        }
        double wide = k->width_s[s];
        LANES {
            double at = x->at[i], ev = x->ev[i], area = x->sum[i];
            double hazard = ev / (at > 0.0 ? at : 1.0), left = at - ev;
            double pull = (left > 0.0 ? 1.0 : 0.0) / (left > 0.0 ? left : 1.0), s_now = x->s[i] * (1.0 - hazard);
            x->pull[i] = pull;
            x->lead[i] = pull * area;
            x->rise[i] += pull * hazard;
            x->rise_lead[i] += pull * area * hazard;
            x->s[i] = s_now;
            x->at[i] = left;
            x->sum[i] = area + s_now * wide;
        }
        for (whole r = k->mid[s]; r < k->end[s]; r++) {
            double rows = k->worth[r], *restrict up = rise + k->place[r] * L, *restrict on = lead + k->place[r] * L;
            LANES up[i] += rows * (x->rise[i] - x->pull[i]);
            LANES on[i] += rows * (x->rise_lead[i] - x->lead[i]);
        }
    }
}

/* Every block of 16 replicates. order [steps], order_from [groups + 1]: steps group after group; met [2, any] lists
 * places of one unit in two groups, met_from where those of each pair of groups begin, (0, 0), (1, 0), (1, 1), (2, 0), …;
 * rmst [count, groups] and covariance [count, groups, groups]. */
int singles(const struct walk *k, const struct draw *d, const whole *order, const whole *order_from, const whole *one,
            const whole *two, const whole *met_from, double *rmst, double *covariance)
{
    weight *w = room(k->units * L, sizeof *w);
    whole *pool = room(k->units, sizeof *pool);
    double *rise = room(k->held * L, sizeof *rise), *lead = room(k->held * L, sizeof *lead);
    int made = w && pool && rise && lead;
    for (whole from = 0; made && from < d->count; from += L) {
        whole here = d->count - from < L ? d->count - from : L;
        fill(w, 1, pool, from, k, d);
        memset(rise, 0, (size_t)(k->held * L) * sizeof *rise);
        memset(lead, 0, (size_t)(k->held * L) * sizeof *lead);
        for (whole g = 0; g < k->groups; g++) {
            struct single x = {{0}};
            for (whole h = k->held_from[g]; h < k->held_from[g + 1]; h++) {
                const weight *restrict v = w + k->held_unit[h] * L;
                LANES x.at[i] += k->held_rows[h] * v[i];
            }
            LANES x.s[i] = 1.0;
            LANES x.sum[i] = x.at[i] > 0.0 ? k->first_s[g] : NAN;
            walk_single(&x, rise, lead, w, k, order + order_from[g], order_from[g + 1] - order_from[g]);
            for (whole r = k->tail_from[g]; r < k->rows_from[g + 1]; r++) {
                double rows = k->worth[r], *restrict up = rise + k->place[r] * L, *restrict on = lead + k->place[r] * L;
                LANES up[i] += rows * x.rise[i];
                LANES on[i] += rows * x.rise_lead[i];
            }
            for (whole h = k->held_from[g] * L; h < k->held_from[g + 1] * L; h += L)
                LANES rise[h + i] = x.sum[i] * rise[h + i] - lead[h + i];
            for (whole i = 0; i < here; i++)
                rmst[(from + i) * k->groups + g] = x.sum[i];
        }
        for (whole g = 0, pair = 0; g < k->groups; g++)
            for (whole h = 0; h <= g; h++, pair++) {
                double total[L] = {0};
                for (whole m = met_from[pair]; m < met_from[pair + 1]; m++) {
                    const weight *restrict v = w + k->held_unit[one[m]] * L;
                    const double *restrict a = rise + one[m] * L, *restrict b = rise + two[m] * L;
                    LANES total[i] += v[i] * a[i] * b[i];
                }
                for (whole i = 0; i < here; i++) {
                    double *to = covariance + (from + i) * k->groups * k->groups;
                    to[g * k->groups + h] = to[h * k->groups + g] = total[i];
                }
            }
    }
    free(w);
    free(pool);
    free(rise);
    free(lead);
    return made;
}
