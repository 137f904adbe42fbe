/* Sums of 4 rows of x with OUTS rows of weights at once, so that each number loaded is used several times. Included once
   for each kind of processor, with W (floats in a vector), OUTS, TARGET, NAME(function) and SUM(vector). */

TARGET static inline __attribute__((always_inline)) void NAME(tile)(
    const float *w, int64_t by_out, const float *x, int64_t by_row, int64_t n, const int rows, const int outs, const char *next,
    float *sum
) {
    typedef float vector __attribute__((vector_size(4 * W), aligned(4), may_alias));
    vector own[4][OUTS];
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outs; o++) own[r][o] = (vector){0};
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        vector a[OUTS];
        for (int o = 0; o < outs; o++) a[o] = *(const vector *)(w + o * by_out + i);
        if (next) /* what the outputs after these will read: their rows are too short to be foreseen */
            for (int o = 0; o < outs; o++) __builtin_prefetch(next + (i * outs + o * W) * 4);
        for (int r = 0; r < rows; r++) {
            vector b = *(const vector *)(x + r * by_row + i);
            for (int o = 0; o < outs; o++) own[r][o] += a[o] * b;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outs; o++) {
            float s = SUM(own[r][o]);
            for (int64_t j = i; j < n; j++) s += w[o * by_out + j] * x[r * by_row + j];
            sum[r * OUTS + o] += s;
        }
}

/* `outs` outputs from o on. Weights in fewer bits are unpacked a stretch at a time. */
TARGET static inline __attribute__((always_inline)) void NAME(outputs)(const job_t *job, int64_t o, const int outs) {
    float sum[MOST * OUTS] = {0}, part[OUTS * STRETCH];
    int64_t stretch = job->kind == FLOAT32 ? job->in : STRETCH;
    for (int64_t i = 0; i < job->in; i += stretch) {
        int64_t n = job->in - i < stretch ? job->in - i : stretch, by_out = job->in, r = 0;
        const float *w = (const float *)job->w + o * job->in + i, *x = job->x + i;
        if (job->kind != FLOAT32) {
            for (int k = 0; k < outs; k++) unpack_row(job, o + k, i, n, part + k * STRETCH);
            w = part, by_out = STRETCH;
        }
        if (job->kind == FLOAT32 && r + 4 <= job->rows) {
            NAME(tile)(w, by_out, x, job->in, n, 4, outs, (const char *)(w + outs * job->in), sum);
            r = 4;
        }
        for (; r + 4 <= job->rows; r += 4)
            NAME(tile)(w, by_out, x + r * job->in, job->in, n, 4, outs, 0, sum + r * OUTS);
        for (; r < job->rows; r++) NAME(tile)(w, by_out, x + r * job->in, job->in, n, 1, outs, 0, sum + r * OUTS);
    }
    for (int64_t r = 0; r < job->rows; r++)
        for (int k = 0; k < outs; k++)
            job->y[r * job->out + o + k] = sum[r * OUTS + k] + (job->bias ? job->bias[o + k] : 0);
}

TARGET static void NAME(several)(const job_t *job, int64_t from, int64_t to) {
    for (; from + OUTS <= to; from += OUTS) NAME(outputs)(job, from, OUTS);
    for (; from < to; from++) NAME(outputs)(job, from, 1);
}

#undef W
#undef OUTS
#undef TARGET
#undef NAME
#undef SUM
