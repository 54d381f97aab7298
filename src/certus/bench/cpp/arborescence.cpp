// The loop of src/certus/kernels/arborescence.py, word for word, for comparison. Built by the suite arborescence of certus bench.
#include <cstdint>
#include <limits>
#include <vector>

using std::size_t;
static const double NEG = -std::numeric_limits<double>::infinity();

struct Work {
    std::vector<double> best, rows;
    std::vector<int64_t> head, child, sibling, top, after, last, entry, mark, walk;
    explicit Work(size_t n)
        : best(2 * n + 2), rows(n * (n + 1)), head(2 * n + 2), child(2 * n + 2), sibling(2 * n + 2), top(2 * n + 2),
          after(2 * n + 2), last(2 * n + 2), entry(2 * n + 2), mark(2 * n + 2), walk(2 * n + 2) {}
};

static void greedy(const double* __restrict score, size_t stride, size_t n, int first, double* __restrict best,
                   int64_t* __restrict head) {
    for (size_t m = 1; m <= n; ++m) {
        best[m] = first == 0 ? score[m] : NEG;
        head[m] = 0;
    }
    for (size_t h = 1; h <= n; ++h) {
        const double* row = score + h * stride;
        const int64_t label = (int64_t)h;
        for (size_t m = 1; m < h; ++m) {
            const bool better = row[m] > best[m];
            best[m] = better ? row[m] : best[m];
            head[m] = better ? label : head[m];
        }
        for (size_t m = h + 1; m <= n; ++m) {
            const bool better = row[m] > best[m];
            best[m] = better ? row[m] : best[m];
            head[m] = better ? label : head[m];
        }
    }
    if (first == 1)
        for (size_t m = 1; m <= n; ++m)
            if (best[m] == NEG) {
                best[m] = score[m];
                head[m] = 0;
            }
}

static bool contract(const double* score, size_t stride, size_t n, int first, Work& w) {
    const size_t width = n + 1;
    greedy(score, stride, n, first, w.best.data(), w.head.data());
    for (size_t v = 0; v <= n; ++v) {
        w.top[v] = w.last[v] = w.entry[v] = (int64_t)v;
        w.after[v] = w.sibling[v] = -1;
        w.mark[v] = 0;
    }
    w.mark[0] = 2;
    size_t count = n + 1;
    for (size_t start = 1; start <= n; ++start) {
        size_t c = (size_t)w.top[start];
        if (w.mark[c] != 0) continue;
        size_t depth = 0;
        for (;;) {
            w.walk[depth++] = (int64_t)c;
            w.mark[c] = 1;
            if (w.best[c] == NEG) return false;
            const size_t u = (size_t)w.top[(size_t)w.head[c]];
            if (w.mark[u] == 2) break;
            if (w.mark[u] == 0) {
                c = u;
                continue;
            }
            const size_t fresh = count++;
            double* __restrict row = w.rows.data() + (fresh - width) * width;
            w.mark[fresh] = 1;
            w.sibling[fresh] = -1;
            for (size_t h = 0; h < width; ++h) row[h] = NEG;
            int64_t previous = -1, tail = -1;
            for (;;) {
                const size_t v = (size_t)w.walk[--depth];
                const double loss = w.best[v];
                if (v < width) {
                    for (size_t h = 0; h < width; ++h) {
                        const double x = score[h * stride + v] - loss;
                        row[h] = x > row[h] ? x : row[h];
                    }
                } else {
                    const double* inner = w.rows.data() + (v - width) * width;
                    for (size_t h = 0; h < width; ++h) {
                        const double x = inner[h] - loss;
                        row[h] = x > row[h] ? x : row[h];
                    }
                }
                w.sibling[v] = previous;
                previous = (int64_t)v;
                if (tail == -1) w.last[fresh] = w.last[v];
                else w.after[(size_t)w.last[v]] = tail;
                tail = w.entry[v];
                if (v == u) break;
            }
            w.child[fresh] = previous;
            w.entry[fresh] = tail;
            for (; tail != -1; tail = w.after[(size_t)tail]) {
                w.top[(size_t)tail] = (int64_t)fresh;
                row[tail] = NEG;
            }
            double most = NEG;
            size_t arg = 0;
            for (size_t h = (size_t)first; h < width; ++h)
                if (row[h] > most) {
                    most = row[h];
                    arg = h;
                }
            if (first == 1 && most == NEG) {
                most = row[0];
                arg = 0;
            }
            w.best[fresh] = most;
            w.head[fresh] = (int64_t)arg;
            c = fresh;
        }
        for (size_t k = 0; k < depth; ++k) w.mark[(size_t)w.walk[k]] = 2;
    }
    return true;
}

static void expand(const double* score, size_t stride, size_t n, int64_t* heads, Work& w) {
    const size_t width = n + 1;
    for (size_t m = 1; m <= n; ++m) {
        const size_t outer = (size_t)w.top[m];
        if (outer == m) {
            heads[m] = w.head[m];
            continue;
        }
        if (w.mark[outer] == 3) continue;
        w.mark[outer] = 3;
        size_t depth = 0;
        w.walk[depth++] = (int64_t)outer;
        while (depth > 0) {
            const size_t c = (size_t)w.walk[--depth];
            const size_t h = (size_t)w.head[c];
            if (c < width) {
                heads[c] = (int64_t)h;
                continue;
            }
            double most = NEG;
            int64_t through = -1;
            for (int64_t v = w.child[c]; v != -1; v = w.sibling[(size_t)v]) {
                const double x =
                    ((size_t)v < width ? score[h * stride + (size_t)v] : w.rows[((size_t)v - width) * width + h]) -
                    w.best[(size_t)v];
                if (x > most) {
                    most = x;
                    through = v;
                }
                w.walk[depth++] = v;
            }
            w.head[(size_t)through] = (int64_t)h;
        }
    }
}

static double best_heads(const double* score, size_t stride, size_t n, bool single, int64_t* heads, Work& w) {
    heads[0] = -1;
    for (int first = 0; first < 2; ++first) {
        if (!contract(score, stride, n, first, w)) return NEG;
        expand(score, stride, n, heads, w);
        size_t roots = 0;
        for (size_t m = 1; m <= n; ++m) roots += heads[m] == 0;
        if (!single || roots <= 1) break;
        if (first == 1) return NEG;
    }
    double total = 0.0;
    for (size_t m = 1; m <= n; ++m) total += score[(size_t)heads[m] * stride + m];
    return total;
}

extern "C" void best_heads_batch(const double* score, int64_t stride, const int64_t* lengths, int64_t batch, int single,
                                 int64_t* heads, double* values) {
    Work w((size_t)stride);
    for (int64_t b = 0; b < batch; ++b) {
        for (int64_t m = lengths[b] + 1; m < stride; ++m) heads[b * stride + m] = -1;
        values[b] = best_heads(score + b * stride * stride, (size_t)stride, (size_t)lengths[b], single != 0,
                               heads + b * stride, w);
    }
}
