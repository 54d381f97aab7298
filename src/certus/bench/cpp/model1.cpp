// The loop of kernels/thirdorder.py (inside_all and read_off, all arrays given, single root) in C++.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

static const double NEVER = -std::numeric_limits<double>::infinity();

struct Item {
    bool right;
    size_t g, i, j;
};

extern "C" double decode(const double* arc, const double* sib, const double* gp, const double* gs, int64_t words,
                         int64_t* heads) {
    size_t n = words, N = n + 1, square = N * N, cube = N * N * N;
    std::vector<double> R(cube, NEVER), L(cube, NEVER), S(cube, NEVER), IR(cube, NEVER), IL(cube, NEVER);
    std::vector<double> T(square), A(N), V(N), arc_to(square);
    for (size_t g = 0; g < N; g++)
        for (size_t h = 0; h < N; h++) {
            arc_to[h * N + g] = arc[g * N + h] > NEVER || h == 0 ? 0.0 : NEVER;
            R[(h * N + h) * N + g] = L[(h * N + h) * N + g] = arc_to[h * N + g];
        }
    for (size_t i = n; i >= 1; i--) {
        for (size_t j = i + 1; j <= n; j++) T[i * N + j] = L[((i + 1) * N + j) * N + i];
        for (size_t s = i + 1; s < n; s++)
            for (size_t j = s + 1; j <= n; j++) T[s * N + j] = S[(s * N + j) * N + i];
        for (size_t s = i; s < n; s++)
            for (size_t j = s + 1; j <= n; j++) T[s * N + j] += sib[(i * N + s) * N + j];
        for (size_t g = 0; g <= n; g++) {
            if (g == i || arc[g * N + i] == NEVER) continue;
            size_t far = g < i ? n : g - 1, base = (g * N + i) * N, at = (base + i) * N;
            for (size_t j = i + 1; j <= far; j++) A[j] = T[i * N + j] + gs[at + j];
            for (size_t s = i + 1; s <= far; s++) {
                double v = A[s] + arc[i * N + s] + gp[base + s];
                IR[(i * N + s) * N + g] = v;
                size_t low = s * N, at = (base + s) * N;
                for (size_t j = s + 1; j <= far; j++) A[j] = std::max(A[j], v + T[low + j] + gs[at + j]);
            }
        }
        for (size_t e = i + 1; e <= n; e++) {
            std::fill(V.begin(), V.end(), NEVER);
            for (size_t m = i + 1; m <= e; m++) {
                double v = R[(m * N + e) * N + i];
                size_t row = (i * N + m) * N;
                for (size_t g = 0; g < N; g++) V[g] = std::max(V[g], v + IR[row + g]);
            }
            size_t at = (i * N + e) * N;
            for (size_t g = 0; g < N; g++) R[at + g] = V[g] + arc_to[i * N + g];
        }
        for (size_t j = i + 1; j <= n; j++) {
            std::fill(V.begin(), V.end(), NEVER);
            for (size_t r = i; r < j; r++) {
                size_t left = (i * N + r) * N, right = ((r + 1) * N + j) * N;
                for (size_t g = 0; g < N; g++) V[g] = std::max(V[g], R[left + g] + L[right + g]);
            }
            size_t at = (i * N + j) * N;
            for (size_t g = 0; g < N; g++) S[at + g] = V[g];
        }
        for (size_t j = i + 1; j <= n; j++) {
            double v = R[(i * N + j - 1) * N + j] + sib[(j * N + j) * N + i];
            for (size_t g = 0; g < N; g++) V[g] = v + gs[((g * N + j) * N + j) * N + i];
            for (size_t s = i + 1; s < j; s++) {
                v = S[(i * N + s) * N + j] + sib[(j * N + s) * N + i];
                size_t row = (j * N + s) * N;
                for (int side = 0; side < 2; side++) {
                    size_t cell = side ? (j + 1) * cube + row + i : row + i, high = side ? n + 1 : i;
                    for (size_t g = side ? j + 1 : 0; g < high; g++, cell += cube)
                        V[g] = std::max(V[g], IL[row + g] + v + gs[cell]);
                }
            }
            size_t at = (j * N + i) * N;
            for (size_t g = 0; g < N; g++) IL[at + g] = V[g] + arc[j * N + i] + gp[g * square + j * N + i];
            std::fill(V.begin(), V.end(), NEVER);
            for (size_t m = i; m < j; m++) {
                v = L[(i * N + m) * N + j];
                size_t row = (j * N + m) * N;
                for (size_t g = 0; g < N; g++) V[g] = std::max(V[g], v + IL[row + g]);
            }
            at = (i * N + j) * N;
            for (size_t g = 0; g < N; g++) L[at + g] = V[g] + arc_to[j * N + g];
        }
    }
    double best = NEVER;
    size_t root = 0;
    for (size_t m = 1; m <= n; m++) {
        double score = arc[m] + sib[m] + L[(N + m) * N] + R[(m * N + n) * N];
        if (score > best) best = score, root = m;
    }
    std::fill(heads, heads + N, -1);
    if (root == 0) return best;
    heads[root] = 0;
    std::vector<Item> stack{{false, 0, 1, root}, {true, 0, root, n}};
    while (!stack.empty()) {
        auto [right, g, i, j] = stack.back();
        stack.pop_back();
        if (i == j) continue;
        size_t h = right ? i : j, m = 0;
        double top = NEVER;
        for (size_t k = right ? i + 1 : i; k < (right ? j + 1 : j); k++) {
            double score = right ? IR[(i * N + k) * N + g] + R[(k * N + j) * N + i]
                                 : IL[(j * N + k) * N + g] + L[(i * N + k) * N + j];
            if (score > top) top = score, m = k;
        }
        stack.push_back(right ? Item{true, h, m, j} : Item{false, h, i, m});
        while (true) {
            heads[m] = h;
            size_t s = h;
            top = right ? L[((h + 1) * N + m) * N + h] : R[(m * N + h - 1) * N + h];
            top += sib[(h * N + h) * N + m] + gs[((g * N + h) * N + h) * N + m];
            for (size_t k = right ? h + 1 : h - 1; k != m; right ? k++ : k--) {
                double score = S[(std::min(k, m) * N + std::max(k, m)) * N + h];
                score += right ? IR[(h * N + k) * N + g] : IL[(h * N + k) * N + g];
                score += sib[(h * N + k) * N + m] + gs[((g * N + h) * N + k) * N + m];
                if (score > top) top = score, s = k;
            }
            if (s == h) {
                stack.push_back(right ? Item{false, h, h + 1, m} : Item{true, h, m, h - 1});
                break;
            }
            size_t low = std::min(s, m), high = std::max(s, m), at = low;
            top = NEVER;
            for (size_t r = low; r < high; r++) {
                double score = R[(low * N + r) * N + h] + L[((r + 1) * N + high) * N + h];
                if (score > top) top = score, at = r;
            }
            stack.push_back({true, h, low, at});
            stack.push_back({false, h, at + 1, high});
            m = s;
        }
    }
    return best;
}
