// The loop of kernels/eisner.py in C++: best first-order projective tree of each of `items` sentences.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

static const double NEVER = -std::numeric_limits<double>::infinity();

static void inside(const double* arc, size_t N, size_t n, size_t first, double* R, double* L, double* IR, double* IL,
                   double* B) {
    for (size_t x = 0; x < n + 1 - first; x++) {
        size_t i = n - x, row = i * N;
        for (size_t e = i; e <= n; e++) R[row + e] = L[row + e] = B[e] = NEVER;
        R[row + i] = L[row + i] = 0.0;
        for (size_t r = i; r < n; r++) {
            size_t j = r + 1, low = j * N;
            double c = R[row + r], b = std::max(B[j], c);
            double right = b + arc[row + j], left = b + arc[low + i];
            IR[row + j] = right;
            IL[row + j] = left;
            R[row + j] = std::max(R[row + j], right);
            double done = std::max(L[row + j], left);
            L[row + j] = done;
            for (size_t e = j + 1; e <= n; e++) {
                B[e] = std::max(B[e], c + L[low + e]);
                R[row + e] = std::max(R[row + e], right + R[low + e]);
                L[row + e] = std::max(L[row + e], done + IL[low + e]);
            }
        }
    }
}

struct Item { bool right; size_t i, j; };

static void read_off(size_t N, const double* R, const double* L, const double* IR, const double* IL, Item goal,
                     int64_t* heads, std::vector<Item>& stack) {
    stack.push_back(goal);
    while (!stack.empty()) {
        Item t = stack.back();
        stack.pop_back();
        if (t.i == t.j) continue;
        double best = NEVER;
        size_t at = t.i, i = t.i, j = t.j;
        if (t.right) {
            for (size_t m = i + 1; m <= j; m++) {
                double v = IR[i * N + m] + R[m * N + j];
                if (v > best) best = v, at = m;
            }
            heads[at] = i;
            stack.push_back({true, at, j});
            j = at;
        } else {
            for (size_t m = i; m < j; m++) {
                double v = IL[m * N + j] + L[i * N + m];
                if (v > best) best = v, at = m;
            }
            heads[at] = j;
            stack.push_back({false, i, at});
            i = at;
        }
        best = NEVER;
        at = i;
        for (size_t r = i; r < j; r++) {
            double v = R[i * N + r] + L[(r + 1) * N + j];
            if (v > best) best = v, at = r;
        }
        stack.push_back({true, i, at});
        stack.push_back({false, at + 1, j});
    }
}

extern "C" void decode(const double* arc, int64_t items, int64_t size, const int64_t* lengths, int64_t* heads,
                       double* value) {
    size_t N = size, cells = N * N;
    std::vector<double> R(cells), L(cells), IR(cells), IL(cells), B(N);
    std::vector<Item> stack;
    std::fill(heads, heads + items * N, int64_t(-1));
    for (int64_t k = 0; k < items; k++) {
        const double* a = arc + k * cells;
        int64_t* y = heads + k * N;
        size_t n = lengths[k], at = 1;
        inside(a, N, n, 1, R.data(), L.data(), IR.data(), IL.data(), B.data());
        double best = NEVER;
        for (size_t m = 1; m <= n; m++) {
            double v = a[m] + L[N + m] + R[m * N + n];
            if (v > best) best = v, at = m;
        }
        value[k] = best;
        if (best == NEVER) continue;
        y[at] = 0;
        read_off(N, R.data(), L.data(), IR.data(), IL.data(), {false, 1, at}, y, stack);
        read_off(N, R.data(), L.data(), IR.data(), IL.data(), {true, at, n}, y, stack);
    }
}
