/* Products of a weight matrix with a few rows: what a decoding step spends its time on. steps.c includes this file.

   y[r, o] = sum_i x[r, i] w[o, i]          x, y float32; w float32, float16, bfloat16 or blocks of 32 as GGUF
                                         stores them

   All arithmetic is float32, whatever the weights are stored in. The work is cut by output rows over the threads of
   whoever calls: `parallel` is OpenMP's own entrance (GOMP_parallel), handed in so that no second pool of threads is
   made beside PyTorch's; NULL computes on the calling thread. Every thread computes whole outputs, so the numbers do
   not depend on how many there are. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define X86 1
#define AVX2 __attribute__((target("avx2,fma,f16c")))
#endif

#define ROWS 8   /* rows of x that one pass over the weights serves */
#define BLOCK 32 /* weights that share a scale */

typedef void (*parallel_fn)(void (*)(void *), void *, unsigned, unsigned);
typedef int (*rank_fn)(void);

typedef struct {
    const float *x;
    const void *w;
    const float *bias;
    float *y;
    int64_t rows, in, out;
    int kind, threads;
    rank_fn rank;
} job_t;

enum { FLOAT32, FLOAT16, Q8, Q4, BFLOAT16 };

static float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, fraction = h & 1023, bits;
    if (exponent == 31) {
        bits = sign | 0x7f800000 | fraction << 13;
    } else if (exponent) {
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else if (fraction) {
        exponent = 113;
        while (!(fraction & 1024)) fraction <<= 1, exponent--;
        bits = sign | exponent << 23 | (fraction & 1023) << 13;
    } else {
        bits = sign;
    }
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static size_t row_bytes(int kind, int64_t in) {
    switch (kind) {
    case FLOAT32: return (size_t)in * 4;
    case FLOAT16:
    case BFLOAT16: return (size_t)in * 2;
    case Q8: return (size_t)(in / BLOCK) * 34;
    default: return (size_t)(in / BLOCK) * 18;
    }
}

/* ------------------------------------------------------------------ any processor */

static void unpack_plain(int kind, const uint8_t *w, int64_t i, int64_t n, float *out) {
    if (kind == FLOAT32) {
        memcpy(out, w + 4 * i, (size_t)n * 4);
    } else if (kind == FLOAT16 || kind == BFLOAT16) {
        for (int64_t j = 0; j < n; j++) {
            uint16_t h;
            memcpy(&h, w + 2 * (i + j), 2);
            uint32_t bits = (uint32_t)h << 16;
            if (kind == FLOAT16) out[j] = half_to_float(h);
            else memcpy(out + j, &bits, 4);
        }
    } else {
        uint16_t h;
        const uint8_t *block = w + (i / BLOCK) * (kind == Q8 ? 34 : 18);
        memcpy(&h, block, 2);
        float d = half_to_float(h);
        for (int j = 0; j < BLOCK; j++) {
            int q = kind == Q8 ? (int8_t)block[2 + j] : (j < 16 ? block[2 + j] & 15 : block[2 + j - 16] >> 4) - 8;
            out[j] = d * (float)q;
        }
    }
}

static void dot_plain(const job_t *job, int64_t o, int64_t first, int64_t count) {
    const uint8_t *w = (const uint8_t *)job->w + (size_t)o * row_bytes(job->kind, job->in);
    float sum[ROWS] = {0}, part[BLOCK];
    for (int64_t i = 0; i < job->in; i += BLOCK) {
        int64_t n = job->in - i < BLOCK ? job->in - i : BLOCK;
        unpack_plain(job->kind, w, i, n, part);
        for (int64_t r = 0; r < count; r++) {
            const float *x = job->x + (first + r) * job->in + i;
            float s = 0;
            for (int64_t j = 0; j < n; j++) s += part[j] * x[j];
            sum[r] += s;
        }
    }
    for (int64_t r = 0; r < count; r++) job->y[(first + r) * job->out + o] = sum[r] + (job->bias ? job->bias[o] : 0);
}

/* ------------------------------------------------------------------ AVX2 */

#ifdef X86
AVX2 static inline float total(__m256 v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

/* 32 weights from place i of a row, not yet scaled, as 4 vectors; the scale of blocks is returned. */
AVX2 static inline __m256 unpack(int kind, const uint8_t *w, int64_t i, __m256 out[4]) {
    if (kind == FLOAT32) {
        for (int j = 0; j < 4; j++) out[j] = _mm256_loadu_ps((const float *)w + i + 8 * j);
        return _mm256_setzero_ps();
    }
    if (kind == FLOAT16) {
        for (int j = 0; j < 4; j++) out[j] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(w + 2 * (i + 8 * j))));
        return _mm256_setzero_ps();
    }
    if (kind == BFLOAT16) {
        for (int j = 0; j < 4; j++) {
            __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(w + 2 * (i + 8 * j))));
            out[j] = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
        }
        return _mm256_setzero_ps();
    }
    const uint8_t *block = w + (i / BLOCK) * (kind == Q8 ? 34 : 18);
    uint16_t h;
    memcpy(&h, block, 2);
    __m256 d = _mm256_set1_ps(_cvtsh_ss(h));
    if (kind == Q8) {
        for (int j = 0; j < 4; j++)
            out[j] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(block + 2 + 8 * j))));
    } else {
        __m128i both = _mm_loadu_si128((const __m128i *)(block + 2)), mask = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
        __m128i low = _mm_sub_epi8(_mm_and_si128(both, mask), eight);
        __m128i high = _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(both, 4), mask), eight);
        out[0] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(low));
        out[1] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(low, 8)));
        out[2] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high));
        out[3] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(high, 8)));
    }
    return d;
}

/* `kind` and `count` are constants where this is expanded, so that every loop over them disappears. */
AVX2 static inline __attribute__((always_inline)) void dot_with(
    const job_t *job, const int kind, int64_t o, int64_t first, const int count
) {
    const uint8_t *w = (const uint8_t *)job->w + (size_t)o * row_bytes(kind, job->in);
    const int wide = count == 1 ? 4 : 1; /* sums of one row of x, so that additions need not wait for each other */
    __m256 sum[ROWS], own[4];
    for (int r = 0; r < count; r++) sum[r] = _mm256_setzero_ps();
    for (int j = 0; j < 4; j++) own[j] = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + BLOCK <= job->in; i += BLOCK) {
        __m256 part[4], d = unpack(kind, w, i, part);
        for (int r = 0; r < count; r++) {
            const float *x = job->x + (first + r) * job->in + i;
            if (kind == Q8 || kind == Q4) {
                __m256 s = _mm256_mul_ps(part[0], _mm256_loadu_ps(x)), t = _mm256_mul_ps(part[1], _mm256_loadu_ps(x + 8));
                s = _mm256_fmadd_ps(part[2], _mm256_loadu_ps(x + 16), s);
                t = _mm256_fmadd_ps(part[3], _mm256_loadu_ps(x + 24), t);
                sum[r] = _mm256_fmadd_ps(_mm256_add_ps(s, t), d, sum[r]);
            } else if (wide == 4) {
                for (int j = 0; j < 4; j++) own[j] = _mm256_fmadd_ps(part[j], _mm256_loadu_ps(x + 8 * j), own[j]);
            } else {
                for (int j = 0; j < 4; j++) sum[r] = _mm256_fmadd_ps(part[j], _mm256_loadu_ps(x + 8 * j), sum[r]);
            }
        }
    }
    if (wide == 4 && kind != Q8 && kind != Q4)
        sum[0] = _mm256_add_ps(_mm256_add_ps(own[0], own[1]), _mm256_add_ps(own[2], own[3]));
    float rest[BLOCK];
    int64_t n = job->in - i;
    if (n) unpack_plain(kind, w, i, n, rest);
    for (int r = 0; r < count; r++) {
        float s = total(sum[r]);
        for (int64_t j = 0; j < n; j++) s += rest[j] * job->x[(first + r) * job->in + i + j];
        job->y[(first + r) * job->out + o] = s + (job->bias ? job->bias[o] : 0);
    }
}

#define CASE(n) case n: dot_with(job, kind, o, first, n); break;
AVX2 static inline __attribute__((always_inline)) void dot_rows(
    const job_t *job, const int kind, int64_t o, int64_t first, int64_t count
) {
    switch (count) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) }
}

/* Numbers i to i + n of row o as float32; n is a number of whole blocks, or the last of them. */
AVX2 static void unpack_row(const job_t *job, int64_t o, int64_t i, int64_t n, float *out) {
    const uint8_t *w = (const uint8_t *)job->w + (size_t)o * row_bytes(job->kind, job->in);
    int64_t j = 0;
    for (; j + BLOCK <= n; j += BLOCK) {
        __m256 part[4], d = unpack(job->kind, w, i + j, part);
        for (int k = 0; k < 4; k++)
            _mm256_storeu_ps(out + j + 8 * k, job->kind == Q8 || job->kind == Q4 ? _mm256_mul_ps(part[k], d) : part[k]);
    }
    if (j < n) unpack_plain(job->kind, w, i + j, n - j, out + j);
}

#define STRETCH 1024
#define MOST 16 /* rows of x */
#define FEW 8   /* rows of x that are multiplied without a tile */

#define W 8
#define OUTS 3
#define TARGET AVX2
#define NAME(f) f##_256
#define SUM(v) total((__m256)(v))
#include "tile.h"

#define W 16
#define OUTS 6
#define TARGET __attribute__((target("avx512f,avx2,fma,f16c")))
#define NAME(f) f##_512
#define SUM(v) _mm512_reduce_add_ps((__m512)(v))
#include "tile.h"

AVX2 static void dot_avx2(const job_t *job, int64_t from, int64_t to) {
    for (int64_t o = from; o < to; o++)
        for (int64_t first = 0; first < job->rows; first += ROWS) {
            int64_t count = job->rows - first < ROWS ? job->rows - first : ROWS;
            switch (job->kind) {
            case FLOAT32: dot_rows(job, FLOAT32, o, first, count); break;
            case FLOAT16: dot_rows(job, FLOAT16, o, first, count); break;
            case BFLOAT16: dot_rows(job, BFLOAT16, o, first, count); break;
            case Q8: dot_rows(job, Q8, o, first, count); break;
            default: dot_rows(job, Q4, o, first, count); break;
            }
        }
}
#endif

/* ------------------------------------------------------------------ the entrances */

static int vectors = 0; /* whether the vector instructions above are there and wanted; 2: those of AVX-512 too */

int gnomon_abi(void) { return 4; } /* raised with every change of an entrance; __init__.py asks for it */

int gnomon_vectors(int wanted) {
#ifdef X86
    __builtin_cpu_init();
    vectors = wanted && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    if (vectors && wanted > 1 && __builtin_cpu_supports("avx512f")) vectors = 2;
#endif
    return vectors;
}

static void outputs(const job_t *job, int64_t from, int64_t to) {
#ifdef X86
    if (vectors && job->rows > FEW && job->rows <= MOST) {
        if (vectors > 1) several_512(job, from, to);
        else several_256(job, from, to);
        return;
    }
    if (vectors) {
        dot_avx2(job, from, to);
        return;
    }
#endif
    for (int64_t o = from; o < to; o++)
        for (int64_t first = 0; first < job->rows; first += ROWS)
            dot_plain(job, o, first, job->rows - first < ROWS ? job->rows - first : ROWS);
}

static void share(void *data) {
    const job_t *job = data;
    int64_t me = job->threads > 1 ? job->rank() : 0;
    outputs(job, job->out * me / job->threads, job->out * (me + 1) / job->threads);
}

void gnomon_product(
    const float *x, const void *w, const float *bias, float *y, int64_t rows, int64_t in, int64_t out, int kind,
    int threads, parallel_fn parallel, rank_fn rank
) {
    job_t job = {x, w, bias, y, rows, in, out, kind, parallel && rank ? threads : 1, rank};
    if (job.threads > 1) parallel(share, &job, (unsigned)job.threads, 0);
    else share(&job);
}
