/* Two arms over common objects, for every replicate: see kernel.PairValues. */
#include "kernel.h"

/* What a lane holds per object while two arms walk. */
struct pair { double at_a[L], at_b[L], ev_a[L], ev_b[L], s_a[L], s_b[L], gap[L], jump[L], area[L], sup[L], rmst_a[L], rmst_b[L]; };

/* Carry both arms over steps from..to; `sum` is the sum of gaps over objects, `most` its largest size so far. */
static void walk_pair(struct pair *all, double *restrict sum, double *restrict most, const weight *w, const struct walk *k,
                      whole from, whole to, whole compared)
{
    whole rows = k->rows_from[k->groups];
    for (whole s = from; s < to; s++) {
        struct pair *restrict x = all + k->group[s];
        for (whole r = k->start[s]; r < k->end[s] && r + AHEAD < rows; r++)
            fetch_weights(w + k->unit[r + AHEAD] * TWO, TWO);
        for (whole r = k->start[s]; r < k->mid[s]; r++) {
            const weight *restrict v = w + k->unit[r] * TWO;
            LANES x->at_a[i] -= v[i];
            LANES x->at_b[i] -= v[L + i];
        }
        const weight *restrict v = w + k->unit[k->mid[s]] * TWO;
        LANES x->ev_a[i] = v[i];
        LANES x->ev_b[i] = v[L + i];
        for (whole r = k->mid[s] + 1; r < k->end[s]; r++) {
            const weight *restrict more = w + k->unit[r] * TWO;
            LANES x->ev_a[i] += more[i];
            LANES x->ev_b[i] += more[L + i];
        }
        double wide = k->width_s[s], counted = s < compared;
        LANES {
            double at_a = x->at_a[i], at_b = x->at_b[i], ev_a = x->ev_a[i], ev_b = x->ev_b[i];
            double s_a = x->s_a[i] * (1.0 - ev_a / (at_a > 0.0 ? at_a : 1.0));
            double s_b = x->s_b[i] * (1.0 - ev_b / (at_b > 0.0 ? at_b : 1.0));
            x->s_a[i] = s_a;
            x->s_b[i] = s_b;
            x->at_a[i] = at_a - ev_a;
            x->at_b[i] = at_b - ev_b;
            double gap = s_b - s_a, size = fabs(gap), kept = size * counted, sup = x->sup[i];
            x->jump[i] = gap - x->gap[i];
            x->gap[i] = gap;
            x->sup[i] = kept > sup ? kept : sup;
            x->area[i] += size * wide;
            x->rmst_a[i] += s_a * wide;
            x->rmst_b[i] += s_b * wide;
        }
        LANES sum[i] += x->jump[i];
        if (k->closes[s] && s < compared)
            LANES most[i] = fabs(sum[i]) > most[i] ? fabs(sum[i]) : most[i];
    }
}

/* Every block of 16 replicates; out [count, groups, 4 + 2 × stops + 2 × columns], brought [units, columns]. */
int pairs(const struct walk *k, const struct draw *d, whole compared, whole stops, const whole *stop, whole columns,
          const double *brought, double *sup_mean, double *out)
{
    whole wide = 4 + 2 * stops + 2 * columns;
    weight *w = room(k->units * TWO, sizeof *w);
    whole *pool = room(k->units, sizeof *pool);
    struct pair *x = room(k->groups, sizeof *x);
    int made = w && pool && x;
    for (whole from = 0; made && from < d->count; from += L) {
        whole here = d->count - from < L ? d->count - from : L, done = 0;
        double sum[L] = {0}, most[L] = {0};
        fill(w, 2, pool, from, k, d);
        memset(x, 0, (size_t)k->groups * sizeof *x);
        for (whole g = 0; g < k->groups; g++) {
            LANES x[g].s_a[i] = x[g].s_b[i] = 1.0;
            LANES x[g].rmst_a[i] = x[g].rmst_b[i] = k->first_s[g];
            for (whole h = k->held_from[g]; h < k->held_from[g + 1]; h++) {
                const weight *restrict v = w + k->held_unit[h] * TWO;
                LANES x[g].at_a[i] += k->held_rows[h] * v[i];
                LANES x[g].at_b[i] += k->held_rows[h] * v[L + i];
            }
        }
        for (whole n = 0; n <= stops; n++) {
            whole to = n < stops ? stop[n] : k->steps;
            walk_pair(x, sum, most, w, k, done, to, compared);
            done = to;
            for (whole g = 0; n < stops && g < k->groups; g++)
                for (whole i = 0; i < here; i++) {
                    out[((from + i) * k->groups + g) * wide + 4 + n] = 1.0 - x[g].s_a[i];
                    out[((from + i) * k->groups + g) * wide + 4 + stops + n] = 1.0 - x[g].s_b[i];
                }
        }
        for (whole i = 0; i < here; i++) {
            sup_mean[from + i] = most[i] / (double)k->groups;
            for (whole g = 0; g < k->groups; g++) {
                double *to = out + ((from + i) * k->groups + g) * wide;
                to[0] = x[g].sup[i];
                to[1] = x[g].area[i];
                to[2] = x[g].rmst_a[i];
                to[3] = x[g].rmst_b[i];
            }
        }
        for (whole g = 0; g < k->groups; g++)
            for (whole c = 0; c < columns; c++) {
                double a[L] = {0}, b[L] = {0};
                for (whole h = k->held_from[g]; h < k->held_from[g + 1]; h++) {
                    const weight *restrict v = w + k->held_unit[h] * TWO;
                    double each = brought[k->held_unit[h] * columns + c];
                    LANES a[i] += v[i] * each;
                    LANES b[i] += v[L + i] * each;
                }
                for (whole i = 0; i < here; i++) {
                    double *to = out + ((from + i) * k->groups + g) * wide + 4 + 2 * stops + c;
                    to[0] = a[i];
                    to[columns] = b[i];
                }
            }
    }
    free(w);
    free(pool);
    free(x);
    return made;
}
