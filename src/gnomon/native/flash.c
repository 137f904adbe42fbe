/* Attention under a mask or bias of distance, forward and backward, in blocks; and the rotation of pairs.

   out_i = sum_j softmax_j(q_i . k_j scale + added[i, j]) v_j       added[i, j] = vector[T - 1 - i + j]

   All float32. Scores exist for one block of queries and keys at a time (Dao et al. 2022, arXiv:2205.14135), and blocks
   that see nothing are left out, so memory grows with T + S. A head, or a row of tokens, is computed whole by one
   thread, so the numbers do not depend on how many there are. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 64 /* queries, and keys, at a time */

typedef void (*parallel_fn)(void (*)(void *), void *, unsigned, unsigned);
typedef int (*rank_fn)(void);

/* One head: matrices of `width` columns and whole blocks of rows, the rest of them 0. */
typedef struct {
    int64_t T, S, width;
    float scale;
    const float *added; /* T + S - 1, with BLOCK - 1 of -inf before and BLOCK after */
    const int32_t *finite; /* how many entries of `added` before each are above -inf */
    float *q, *k, *kt, *v, *vt, *out, *log, *d_out, *mean, *dq, *dk, *dv, *d_added;
} head_t;

/* Whether any query of a block sees any key of one. */
static int seen(const head_t *h, int64_t i0, int64_t j0) {
    int64_t first = h->T - 1 - i0 + j0; /* of the last query, in `added`, whose first BLOCK - 1 entries are not real */
    int64_t last = first + 2 * BLOCK - 1, end = h->T + h->S - 1 + 2 * BLOCK;
    first = first < 0 ? 0 : first;
    return h->finite[last < end ? last : end] > h->finite[first];
}

/* What is left of a block, in whole units. */
static int64_t part(int64_t left, int64_t unit) { return left < BLOCK ? (left + unit - 1) / unit * unit : BLOCK; }

#define W 4
#define MR 4
#define TARGET
#define NAME(x) x##_any
#include "flash.h"
#undef W
#undef MR
#undef TARGET
#undef NAME

#if defined(__x86_64__) && defined(__GNUC__)
#define X86 1
#define W 8
#define MR 4
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) x##_avx2
#include "flash.h"
#undef W
#undef MR
#undef TARGET
#undef NAME
#define W 16
#define MR 8
#define TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define NAME(x) x##_avx512
#include "flash.h"
#endif

#ifdef X86
#define CHOSEN(f) (level == 0 ? f##_any : level == 1 ? f##_avx2 : f##_avx512)
#else
#define CHOSEN(f) f##_any
#endif

static int level = 0; /* 0: any processor, 1: AVX2, 2: AVX-512 */

int gnomon_flash_abi(void) { return 1; } /* raised with every change of an entrance */

/* Use the widest vectors there are, up to `most`; returns which. */
int gnomon_flash_vectors(int most) {
#ifdef X86
    __builtin_cpu_init();
    level = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (level && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) level = 2;
#endif
    level = level > most ? most : level;
    return level;
}

/* Where the heads of a tensor (B, heads, rows, columns) lie; numbers of a row lie side by side. */
typedef struct {
    float *data;
    int64_t batch, head, row;
} place_t;

typedef struct {
    place_t q, k, v, out, d_out, dq, dk, dv;
    const float *added;       /* (H or 1, T + S - 1) */
    float *log, *d_added;     /* (B, H, T) and (B, H, T + S - 1) */
    int64_t B, H, shared, T, S, C, added_head; /* shared: query heads to a head of keys; added_head: 0 where all share */
    double scale;
    int64_t next, failed;
} job_t;

static float *of(const place_t *p, int64_t b, int64_t h) { return p->data + b * p->batch + h * p->head; }

/* A head's matrix, with 0 to the right of it and below. */
static void take(float *to, const place_t *p, int64_t b, int64_t h, int64_t rows, int64_t columns, int64_t width) {
    const float *from = of(p, b, h);
    int64_t end = (rows + BLOCK - 1) / BLOCK * BLOCK;
    for (int64_t i = 0; i < rows; i++) {
        memcpy(to + i * width, from + i * p->row, sizeof(float) * (size_t)columns);
        memset(to + i * width + columns, 0, sizeof(float) * (size_t)(width - columns));
    }
    memset(to + rows * width, 0, sizeof(float) * (size_t)((end - rows) * width));
}

static void give(const float *from, const place_t *p, int64_t b, int64_t h, int64_t rows, int64_t columns, int64_t width) {
    float *to = of(p, b, h);
    for (int64_t i = 0; i < rows; i++) memcpy(to + i * p->row, from + i * width, sizeof(float) * (size_t)columns);
}

/* Blocks of rows turned into columns: block n holds (width, BLOCK). */
static void transpose(float *to, const float *from, int64_t rows, int64_t width) {
    for (int64_t j0 = 0; j0 < rows; j0 += BLOCK, to += BLOCK * width, from += BLOCK * width)
        for (int64_t j = 0; j < BLOCK; j++)
            for (int64_t c = 0; c < width; c++) to[c * BLOCK + j] = from[j * width + c];
}

static void one_head(job_t *job, int64_t n, float *room, int32_t *finite, int backward) {
    int64_t T = job->T, S = job->S, C = job->C, b = n / job->H, i = n % job->H, kv = i / job->shared;
    int64_t width = (C + 15) / 16 * 16, N = T + S - 1, ends = N + 2 * BLOCK;
    size_t queries = (size_t)((T + BLOCK - 1) / BLOCK * BLOCK), keys = (size_t)((S + BLOCK - 1) / BLOCK * BLOCK);
    size_t tall = queries * (size_t)width, wide = keys * (size_t)width;
    head_t h = {.T = T, .S = S, .width = width, .scale = (float)job->scale, .finite = finite};
    float *at = room;
#define ROOM(name, n) h.name = at, at += (n)
    ROOM(q, tall), ROOM(out, tall), ROOM(k, wide), ROOM(kt, wide), ROOM(v, wide), ROOM(log, queries);
    float *added = at;
    at += ends;
    if (backward) {
        ROOM(d_out, tall), ROOM(dq, tall), ROOM(vt, wide), ROOM(dk, wide), ROOM(dv, wide), ROOM(mean, queries);
        if (job->d_added) ROOM(d_added, ends);
    }
    const float *given = job->added + i * job->added_head;
    for (int64_t j = 0; j < ends; j++) {
        added[j] = j < BLOCK - 1 || j >= BLOCK - 1 + N ? -INFINITY : given[j - BLOCK + 1];
        finite[j + 1] = finite[j] + (added[j] > -INFINITY);
    }
    h.added = added;
    take(h.q, &job->q, b, i, T, C, width), take(h.k, &job->k, b, kv, S, C, width), take(h.v, &job->v, b, kv, S, C, width);
    transpose(h.kt, h.k, (int64_t)keys, width);
    float *log = job->log + n * T;
    if (!backward) {
        CHOSEN(forward)(&h);
        give(h.out, &job->out, b, i, T, C, width);
        memcpy(log, h.log, sizeof(float) * (size_t)T);
        return;
    }
    transpose(h.vt, h.v, (int64_t)keys, width);
    take(h.out, &job->out, b, i, T, C, width), take(h.d_out, &job->d_out, b, i, T, C, width);
    for (int64_t t = 0; t < (int64_t)queries; t++) {
        h.log[t] = t < T ? log[t] : INFINITY;
        h.mean[t] = 0;
        for (int64_t c = 0; c < width; c++) h.mean[t] += h.out[t * width + c] * h.d_out[t * width + c];
    }
    memset(h.dq, 0, sizeof(float) * tall), memset(h.dk, 0, sizeof(float) * wide), memset(h.dv, 0, sizeof(float) * wide);
    if (job->d_added) memset(h.d_added, 0, sizeof(float) * (size_t)ends);
    CHOSEN(backward)(&h);
    for (size_t j = 0; j < tall; j++) h.dq[j] *= h.scale;
    for (size_t j = 0; j < wide; j++) h.dk[j] *= h.scale;
    give(h.dq, &job->dq, b, i, T, C, width), give(h.dk, &job->dk, b, i, S, C, width), give(h.dv, &job->dv, b, i, S, C, width);
    if (job->d_added) memcpy(job->d_added + n * N, h.d_added + BLOCK - 1, sizeof(float) * (size_t)N);
}

static void heads(job_t *job, int backward) {
    size_t width = (size_t)(job->C + 15) / 16 * 16, ends = (size_t)(job->T + job->S - 1 + 2 * BLOCK);
    size_t queries = (size_t)((job->T + BLOCK - 1) / BLOCK * BLOCK), keys = (size_t)((job->S + BLOCK - 1) / BLOCK * BLOCK);
    size_t numbers = (2 * queries + 3 * keys) * width + queries + ends;
    if (backward) numbers += (2 * queries + 3 * keys) * width + queries + (job->d_added ? ends : 0);
    float *room = aligned_alloc(64, (numbers * sizeof(float) + 63) / 64 * 64);
    int32_t *finite = calloc(ends + 1, sizeof(int32_t));
    if (!room || !finite) job->failed = 1;
    int64_t n;
    while (!job->failed && (n = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < job->B * job->H)
        one_head(job, n, room, finite, backward);
    free(room), free(finite);
}

static void all_forward(void *job) { heads(job, 0); }
static void all_backward(void *job) { heads(job, 1); }

/* Returns 0, or 1 where there was no memory. */
int gnomon_flash(job_t *job, int backward, int threads, parallel_fn parallel) {
    job->next = job->failed = 0;
    if (threads > 1 && parallel) parallel(backward ? all_backward : all_forward, job, (unsigned)threads, 0);
    else heads(job, backward);
    return (int)job->failed;
}

/* y, like x (B, H, T, C), with the first 2 `half` channels turned by cos and sin (B or 1, T, half), the rest copied. */
typedef struct {
    place_t x, y;
    const float *cos, *sin;
    int64_t B, H, T, C, half, table_batch; /* table_batch: 0 where all rows are alike */
    int64_t neighbours, threads;
    double sign; /* -1 turns back */
    rank_fn rank;
} turn_t;

static void turn_rows(void *given) {
    const turn_t *job = given;
    int64_t me = job->threads > 1 ? job->rank() : 0, tokens = job->B * job->T;
    for (int64_t n = tokens * me / job->threads; n < tokens * (me + 1) / job->threads; n++) {
        int64_t b = n / job->T, t = n % job->T, table = b * job->table_batch + t * job->half, turned = 2 * job->half;
        for (int64_t h = 0; h < job->H; h++) {
            const float *x = of(&job->x, b, h) + t * job->x.row;
            float *y = of(&job->y, b, h) + t * job->y.row;
            void (*turn)(const float *, const float *, const float *, float, float *, int64_t) =
                job->neighbours ? CHOSEN(turn_neighbours) : CHOSEN(turn);
            turn(x, job->cos + table, job->sin + table, (float)job->sign, y, job->half);
            if (turned < job->C) memcpy(y + turned, x + turned, sizeof(float) * (size_t)(job->C - turned));
        }
    }
}

void gnomon_turn(turn_t *job, parallel_fn parallel) {
    if (job->threads > 1 && parallel) parallel(turn_rows, job, (unsigned)job->threads, 0);
    else job->threads = 1, turn_rows(job);
}
