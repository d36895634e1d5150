// Prints the nanoseconds of a call of koel_contains: the best of 9 rounds over 2,000,000 keys, half
// of them in a filter of 1,000,000. examples/speed.rs does the same in Rust (`scripts/c speed`).

#include <koel.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { KEYS = 1000000, ASKED = 2 * KEYS, ROUNDS = 9 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(void) {
    char *text = malloc(ASKED * 24);
    size_t *ends = malloc((ASKED + 1) * sizeof *ends), found = 0;
    koel_filter *filter;
    double best = 1e18;
    if (!text || !ends || koel_build(KEYS, 0.001, NULL, &filter)) return 1;
    ends[0] = 0;
    for (size_t i = 0; i < ASKED; i++) {
        ends[i + 1] = ends[i] + (size_t)sprintf(text + ends[i], "host-%zu.example", i);
        bool is_in = i % 2 == 0;
        if (is_in && koel_add(filter, text + ends[i], ends[i + 1] - ends[i], NULL)) return 1;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        found = 0;
        for (size_t i = 0; i < ASKED; i++) {
            int answer = koel_contains(filter, text + ends[i], ends[i + 1] - ends[i]);
            if (answer < 0) return 1;
            found += (size_t)answer;
        }
        double each = (now() - start) / ASKED;
        if (each < best) best = each;
    }
    if (found < KEYS || found > KEYS + KEYS / 500) return 1;
    printf("%.2f\n", best);
    koel_free(filter);
    free(text), free(ends);
    return 0;
}
