/* Attention under a mask or bias of distance, for one width of vectors: flash.c includes this once for each.

   W floats are a vector; TARGET names the instructions; NAME(x) is x for this width. MR rows of a product are summed
   at once. Matrices lie row by row, padded with zeros to whole vectors. */

typedef float NAME(vec) __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef int NAME(ints) __attribute__((vector_size(4 * W), aligned(4), may_alias));
#define V NAME(vec)
#define I NAME(ints)
#define LOAD(p) (*(const V *)(p))
#define STORE(p, x) (*(V *)(p) = (x))
#define ALL(x) ((V){0} + (x))
#define INLINE TARGET static inline __attribute__((always_inline))

INLINE V NAME(choose)(I where, V a, V b) { return (V)(((I)a & where) | ((I)b & ~where)); }
INLINE V NAME(larger)(V a, V b) { return NAME(choose)(a > b, a, b); }

/* e^x for x <= 0 to within two roundings; 0 below -87, where a float has no digits left. */
INLINE V NAME(exp)(V x) {
    I gone = x < ALL(-87.0f); /* not so for NaN, which stays */
    x = NAME(choose)(gone, ALL(-87.0f), x);
    V n = x * 1.44269504f + 12582912.0f;
    I power = ((I)n - (I)ALL(12582912.0f) + 127) << 23;
    n -= 12582912.0f;
    x = x - n * 0.693359375f + n * 2.12194440e-4f;
    V p = ALL(1.9875691500e-4f);
    p = p * x + 1.3981999507e-3f;
    p = p * x + 8.3334519073e-3f;
    p = p * x + 4.1665795894e-2f;
    p = p * x + 1.6666665459e-1f;
    p = p * x + 5.0000001201e-1f;
    p = p * x * x + x + 1.0f;
    return (V)((I)(p * (V)power) & ~gone);
}

INLINE float NAME(sum)(V x) {
    float part[W];
    STORE(part, x);
    for (int n = W / 2; n; n /= 2)
        for (int i = 0; i < n; i++) part[i] += part[i + n];
    return part[0];
}

INLINE float NAME(top)(V x) {
    float part[W];
    STORE(part, x);
    for (int n = W / 2; n; n /= 2)
        for (int i = 0; i < n; i++) part[i] = part[i + n] > part[i] ? part[i + n] : part[i];
    return part[0];
}

/* rows x columns of c += a b over `inner`; `rows` and `vectors` are constants where this is expanded. */
INLINE void NAME(tile)(
    const int rows, const int vectors, const float *a, int64_t step, int64_t along, const float *b, int64_t ldb, float *c,
    int64_t ldc, int64_t inner
) {
    V sum[MR][2];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) sum[i][j] = LOAD(c + i * ldc + j * W);
    for (int64_t k = 0; k < inner; k++) {
        V right[2];
        for (int j = 0; j < vectors; j++) right[j] = LOAD(b + k * ldb + j * W);
        for (int i = 0; i < rows; i++) {
            V left = ALL(a[i * step + k * along]);
            for (int j = 0; j < vectors; j++) sum[i][j] += left * right[j];
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) STORE(c + i * ldc + j * W, sum[i][j]);
}

/* c (rows, columns) += a b, where element (i, k) of a lies at i step + k along; rows a multiple of MR, columns of W. */
TARGET static void NAME(multiply)(
    const float *a, int64_t step, int64_t along, const float *b, int64_t ldb, float *c, int64_t ldc, int64_t rows,
    int64_t columns, int64_t inner
) {
    int64_t j = 0;
    for (; j + 2 * W <= columns; j += 2 * W)
        for (int64_t i = 0; i < rows; i += MR)
            NAME(tile)(MR, 2, a + i * step, step, along, b + j, ldb, c + i * ldc + j, ldc, inner);
    if (j < columns)
        for (int64_t i = 0; i < rows; i += MR)
            NAME(tile)(MR, 1, a + i * step, step, along, b + j, ldb, c + i * ldc + j, ldc, inner);
}

/* Scores of a block, s (BLOCK, BLOCK): q k^T scale + what their distances add. */
INLINE void NAME(scores)(
    const head_t *h, const float *q, const float *kt, int64_t i0, int64_t j0, float *s, int64_t rows, int64_t columns
) {
    memset(s, 0, sizeof(float) * (size_t)rows * BLOCK);
    NAME(multiply)(q, h->width, 1, kt, BLOCK, s, BLOCK, rows, columns, h->width);
    for (int64_t i = 0; i < rows; i++) {
        const float *add = h->added + (BLOCK - 1 + h->T - 1 - i0 - i) + j0; /* BLOCK - 1 of -inf lie on either side */
        for (int64_t j = 0; j < columns; j += W)
            STORE(s + i * BLOCK + j, LOAD(s + i * BLOCK + j) * h->scale + LOAD(add + j));
        for (int64_t j = h->S - j0; j < columns; j++) s[i * BLOCK + j] = -INFINITY; /* past the last key */
    }
}

/* out (T, width) and the logarithms of the sums, log (T). */
TARGET static void NAME(forward)(const head_t *h) {
    float s[BLOCK * BLOCK] __attribute__((aligned(64))), top[BLOCK], sums[BLOCK];
    for (int64_t i0 = 0; i0 < h->T; i0 += BLOCK) {
        float *out = h->out + i0 * h->width;
        int64_t rows = part(h->T - i0, MR);
        memset(out, 0, sizeof(float) * (size_t)(rows * h->width));
        for (int i = 0; i < rows; i++) top[i] = -INFINITY, sums[i] = 0;
        for (int64_t j0 = 0; j0 < h->S; j0 += BLOCK) {
            if (!seen(h, i0, j0)) continue;
            int64_t columns = part(h->S - j0, W);
            NAME(scores)(h, h->q + i0 * h->width, h->kt + j0 * h->width, i0, j0, s, rows, columns);
            for (int i = 0; i < rows; i++) {
                float *row = s + i * BLOCK;
                V most = LOAD(row);
                for (int j = W; j < columns; j += W) most = NAME(larger)(most, LOAD(row + j));
                float now = NAME(top)(most);
                now = now > top[i] || now != now ? now : top[i]; /* NaN stays, here and below */
                if (now == -INFINITY) { /* nothing seen so far */
                    memset(row, 0, sizeof(float) * BLOCK);
                    continue;
                }
                V total = {0};
                for (int j = 0; j < columns; j += W) {
                    V p = NAME(exp)(LOAD(row + j) - now);
                    total += p;
                    STORE(row + j, p);
                }
                if (now > top[i]) {
                    float shrink = expf(top[i] - now);
                    sums[i] *= shrink;
                    for (int64_t c = 0; c < h->width; c += W)
                        STORE(out + i * h->width + c, LOAD(out + i * h->width + c) * shrink);
                    top[i] = now;
                }
                sums[i] += NAME(sum)(total);
            }
            NAME(multiply)(s, BLOCK, 1, h->v + j0 * h->width, h->width, out, h->width, rows, h->width, columns);
        }
        for (int i = 0; i < rows; i++) {
            float whole = sums[i] == 0 ? 0 : 1 / sums[i]; /* a query that sees nothing gets 0 */
            for (int64_t c = 0; c < h->width; c += W)
                STORE(out + i * h->width + c, LOAD(out + i * h->width + c) * whole);
            if (i0 + i < h->T) h->log[i0 + i] = sums[i] == 0 ? INFINITY : top[i] + logf(sums[i]);
        }
    }
}

/* Gradients of q, k, v and of what distances add, from that of the output, with the weights computed again. */
TARGET static void NAME(backward)(const head_t *h) {
    float s[BLOCK * BLOCK] __attribute__((aligned(64))), d[BLOCK * BLOCK] __attribute__((aligned(64)));
    int64_t width = h->width;
    for (int64_t j0 = 0; j0 < h->S; j0 += BLOCK)
        for (int64_t i0 = 0; i0 < h->T; i0 += BLOCK) {
            if (!seen(h, i0, j0)) continue;
            int64_t rows = part(h->T - i0, MR), columns = part(h->S - j0, W);
            const float *q = h->q + i0 * width, *d_out = h->d_out + i0 * width;
            NAME(scores)(h, q, h->kt + j0 * width, i0, j0, s, rows, columns);
            memset(d, 0, sizeof(float) * (size_t)rows * BLOCK);
            NAME(multiply)(d_out, width, 1, h->vt + j0 * width, BLOCK, d, BLOCK, rows, columns, width);
            for (int i = 0; i < rows; i++) {
                float log = h->log[i0 + i], mean = h->mean[i0 + i];
                float *add = h->d_added ? h->d_added + (BLOCK - 1 + h->T - 1 - i0 - i) + j0 : NULL;
                for (int j = 0; j < columns; j += W) {
                    V p = NAME(exp)(LOAD(s + i * BLOCK + j) - log);
                    V ds = p * (LOAD(d + i * BLOCK + j) - mean);
                    STORE(s + i * BLOCK + j, p);
                    STORE(d + i * BLOCK + j, ds);
                    if (add) STORE(add + j, LOAD(add + j) + ds);
                }
            }
            NAME(multiply)(s, 1, BLOCK, d_out, width, h->dv + j0 * width, width, columns, width, rows);
            NAME(multiply)(d, 1, BLOCK, q, width, h->dk + j0 * width, width, columns, width, rows);
            NAME(multiply)(d, BLOCK, 1, h->k + j0 * width, width, h->dq + i0 * width, width, rows, width, columns);
        }
}

/* Pairs (a, b) of a row, `half` apart, become (a cos - b sin, b cos + a sin). */
TARGET static void NAME(turn)(const float *x, const float *cos, const float *sin, float sign, float *y, int64_t half) {
    int64_t i = 0;
    for (; i + W <= half; i += W) {
        V a = LOAD(x + i), b = LOAD(x + half + i), c = LOAD(cos + i), s = LOAD(sin + i) * sign;
        STORE(y + i, a * c - b * s);
        STORE(y + half + i, b * c + a * s);
    }
    for (; i < half; i++) {
        float a = x[i], b = x[half + i], c = cos[i], s = sin[i] * sign;
        y[i] = a * c - b * s;
        y[half + i] = b * c + a * s;
    }
}

/* The same where a pair is two neighbours. */
TARGET static void NAME(turn_neighbours)(
    const float *x, const float *cos, const float *sin, float sign, float *y, int64_t half
) {
    for (int64_t i = 0; i < half; i++) {
        float a = x[2 * i], b = x[2 * i + 1], c = cos[i], s = sin[i] * sign;
        y[2 * i] = a * c - b * s;
        y[2 * i + 1] = b * c + a * s;
    }
}

#undef V
#undef I
#undef LOAD
#undef STORE
#undef ALL
#undef INLINE
