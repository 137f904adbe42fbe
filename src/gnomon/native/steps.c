/* A decoding step as a list of instructions, carried out in one call: what `program.py` records.

   Every thread walks the list and does its share of each instruction: of a product whole outputs, of attention whole
   heads, of all others whole rows or numbers. It waits for the others only where `wait` says that what comes next reads
   or overwrites what they write. Everything is float32 but the weights of products. */

#include <math.h>
#include "products.h"

enum { PRODUCT, NORM, TURN, ATTEND, ACTIVATE, ADD };
enum { IDENTITY, RELU, GELU, GELU_TANH, SILU };

typedef struct {
    int32_t op, kind, wait, heads; /* kind: of weights, norm (1: centred), pairs (1: interleaved) or activation */
    const float *x;                /* (rows, in); of attention queries (rows, heads, in) */
    const void *w;                 /* weights of a product or norm; cosines; keys */
    const float *b;                /* bias of a product or norm; sines; values */
    const float *with;             /* what a product is added to, an activation multiplied with; a mask */
    const float *sinks;            /* of attention, (heads) */
    float *y;
    int64_t rows, in, out;         /* out: of a product its width, of a turn the channels that turn, of keys how many */
    int64_t shared;                /* heads of queries that share keys; rows of x that share cosines */
    int64_t by_row, by_head, by_slot, mask_row, mask_head; /* strides, of keys and of a mask */
    float scale, eps;
} step_t;

typedef struct {
    const step_t *steps;
    int64_t count;
    float *scratch; /* (threads, most keys) */
    int64_t most;
    int threads;
    rank_fn rank;
    void (*barrier)(void);
} run_t;

static void part(int64_t n, int me, int threads, int64_t *from, int64_t *to) {
    *from = n * me / threads, *to = n * (me + 1) / threads;
}

static float activated(int kind, float v) {
    switch (kind) {
    case RELU: return v > 0 ? v : 0;
    case GELU: return 0.5f * v * (1 + erff(v * 0.70710678f));
    case GELU_TANH: return 0.5f * v * (1 + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    case SILU: return v / (1 + expf(-v));
    default: return v;
    }
}

/* ------------------------------------------------------------------ rows and numbers */

static void norm(const step_t *s, int64_t from, int64_t to) {
    const float *w = s->w, *b = s->b;
    for (int64_t r = from; r < to; r++) {
        const float *x = s->x + r * s->in;
        float *y = s->y + r * s->in;
        double sum = 0, square = 0;
        if (s->kind)
            for (int64_t i = 0; i < s->in; i++) sum += x[i];
        float mean = (float)(sum / (double)s->in);
        for (int64_t i = 0; i < s->in; i++) square += (double)(x[i] - mean) * (x[i] - mean);
        float by = (float)(1 / sqrt(square / (double)s->in + s->eps));
        for (int64_t i = 0; i < s->in; i++) y[i] = (x[i] - mean) * by * (w ? w[i] : 1) + (b ? b[i] : 0);
    }
}

/* Rows of x are heads; row r lands at y + (r / heads) by_row + (r % heads) by_head. */
static void turn(const step_t *s, int64_t from, int64_t to) {
    int64_t pairs = s->out / 2;
    for (int64_t r = from; r < to; r++) {
        const float *x = s->x + r * s->in;
        const float *c = pairs ? (const float *)s->w + r / s->heads * s->shared : 0;
        const float *n = pairs ? s->b + r / s->heads * s->shared : 0;
        float *y = s->y + r / s->heads * s->by_row + r % s->heads * s->by_head;
        for (int64_t i = 0; i < pairs; i++) {
            int64_t p = s->kind ? 2 * i : i, q = s->kind ? 2 * i + 1 : i + pairs;
            float a = x[p], b = x[q];
            y[p] = a * c[i] - b * n[i];
            y[q] = b * c[i] + a * n[i];
        }
        for (int64_t i = 2 * pairs; i < s->in; i++) y[i] = x[i];
    }
}

static void activate(const step_t *s, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) s->y[i] = activated(s->kind, s->x[i]) * (s->with ? s->with[i] : s->scale);
}

static void add(const step_t *s, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) s->y[i] = s->x[i] + s->scale * s->with[i];
}

/* ------------------------------------------------------------------ attention */

static float dot_plainly(const float *a, const float *b, int64_t n) {
    float s = 0;
    for (int64_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

static void gather_plainly(float *y, const float *v, float p, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] += p * v[i];
}

#ifdef X86
AVX2 static float dot_vectors(const float *a, const float *b, int64_t n) {
    __m256 s = _mm256_setzero_ps(), t = s;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        s = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), s);
        t = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8), t);
    }
    return total(_mm256_add_ps(s, t)) + dot_plainly(a + i, b + i, n - i);
}

AVX2 static void gather_vectors(float *y, const float *v, float p, int64_t n) {
    __m256 by = _mm256_set1_ps(p);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_fmadd_ps(_mm256_loadu_ps(v + i), by, _mm256_loadu_ps(y + i)));
    gather_plainly(y + i, v + i, p, n - i);
}
#else
#define dot_vectors dot_plainly
#define gather_vectors gather_plainly
#endif

/* One head of one row. `scale` of the scores, `eps` the cap (0: none). Masked keys are never read into a sum, whatever
   lies there; who sees none gets 0. */
static void attend_head(const step_t *s, int64_t r, int64_t h, float *score) {
    const float *q = s->x + (r * s->heads + h) * s->in;
    int64_t at = r * s->by_row + h / s->shared * s->by_head;
    const float *k = (const float *)s->w + at, *v = s->b + at;
    const float *mask = s->with ? s->with + r * s->mask_row + h * s->mask_head : 0;
    float *y = s->y + (r * s->heads + h) * s->in, top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < s->out; j++) {
        if (mask && mask[j] == -INFINITY) {
            score[j] = -INFINITY;
            continue;
        }
        const float *key = k + j * s->by_slot;
        float z = s->scale * (vectors ? dot_vectors(q, key, s->in) : dot_plainly(q, key, s->in));
        if (mask) z += mask[j];
        if (s->eps > 0) z = s->eps * tanhf(z / s->eps);
        score[j] = z;
        if (!(z <= top)) top = z; /* a score that is no number is seen */
    }
    memset(y, 0, (size_t)s->in * sizeof(float));
    if (s->sinks && s->sinks[h] > top) top = s->sinks[h];
    if (top == -INFINITY) return;
    for (int64_t j = 0; j < s->out; j++) {
        if (score[j] == -INFINITY) continue;
        float e = expf(score[j] - top);
        sum += e;
        if (vectors) gather_vectors(y, v + j * s->by_slot, e, s->in);
        else gather_plainly(y, v + j * s->by_slot, e, s->in);
    }
    if (s->sinks) sum += expf(s->sinks[h] - top);
    for (int64_t i = 0; i < s->in; i++) y[i] /= sum;
}

/* ------------------------------------------------------------------ the entrance */

static void multiply(const step_t *s, int64_t from, int64_t to) {
    job_t job = {s->x, s->w, s->b, s->y, s->rows, s->in, s->out, s->kind, 1, 0};
    outputs(&job, from, to);
    if (!s->with && s->scale == 1) return;
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t o = from; o < to; o++) {
            float v = s->y[r * s->out + o];
            if (s->scale != 1) v *= s->scale;
            s->y[r * s->out + o] = s->with ? s->with[r * s->out + o] + v : v;
        }
}

static void walk(void *data) {
    const run_t *run = data;
    int me = run->threads > 1 ? run->rank() : 0;
    for (int64_t n = 0; n < run->count; n++) {
        const step_t *s = run->steps + n;
        int64_t from, to, whole = s->op == PRODUCT ? s->out : s->op == ATTEND ? s->rows * s->heads
            : s->op == NORM || s->op == TURN ? s->rows : s->rows * s->in;
        part(whole, me, run->threads, &from, &to);
        switch (s->op) {
        case PRODUCT: multiply(s, from, to); break;
        case NORM: norm(s, from, to); break;
        case TURN: turn(s, from, to); break;
        case ACTIVATE: activate(s, from, to); break;
        case ADD: add(s, from, to); break;
        default:
            for (int64_t i = from; i < to; i++)
                attend_head(s, i / s->heads, i % s->heads, run->scratch + me * run->most);
        }
        if (s->wait && run->threads > 1) run->barrier();
    }
}

void gnomon_steps(
    const step_t *steps, int64_t count, float *scratch, int64_t most, int threads, parallel_fn parallel, rank_fn rank,
    void (*barrier)(void)
) {
    run_t run = {steps, count, scratch, most, parallel && rank && barrier ? threads : 1, rank, barrier};
    if (run.threads > 1) parallel(walk, &run, (unsigned)run.threads, 0);
    else walk(&run);
}

int64_t gnomon_step_bytes(void) { return sizeof(step_t); }
