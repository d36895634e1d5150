// Passes NULL and length 0 to every function: an error, or the natural answer. Then what else no
// scenario asks: ready hashes, files, a full filter, a filter merged into itself, threads.

#include <koel.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IS(expected, call)                                                                         \
    do {                                                                                           \
        long is = (long)(call);                                                                    \
        if (is != (expected)) {                                                                    \
            fprintf(stderr, "line %d: %s is %ld: %s\n", __LINE__, #call, is, koel_last_error());    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

// Each pointer that may not be NULL is, and the others are right.
static void no_pointer(koel_filter *f, const char *path) {
    koel_filter *made = f;
    koel_bytes bytes = {(uint8_t *)f, 1};
    koel_key keys[2] = {{"a", 1}, {NULL, 1}};
    uint64_t hash = 1, counts[2];
    bool flags[2];
    const char *options = "";
    IS(KOEL_ARGUMENT, koel_build(1, 0.1, NULL, NULL));
    IS(KOEL_ARGUMENT, koel_open(NULL, &made));
    IS(1, made == NULL);
    IS(KOEL_ARGUMENT, koel_open(path, NULL));
    IS(KOEL_ARGUMENT, koel_from_bytes("", 0, NULL));
    IS(KOEL_ARGUMENT, koel_from_bytes(NULL, 1, &made));
    IS(KOEL_ARGUMENT, koel_copy(NULL, &made));
    IS(KOEL_ARGUMENT, koel_copy(f, NULL));
    IS(KOEL_ARGUMENT, koel_verify(NULL));
    IS(KOEL_ARGUMENT, koel_contains(NULL, "a", 1));
    IS(KOEL_ARGUMENT, koel_contains(f, NULL, 1));
    IS(KOEL_ARGUMENT, koel_contains(f, "a", SIZE_MAX));
    IS(KOEL_ARGUMENT, koel_contains_hash(NULL, 1));
    IS(KOEL_ARGUMENT, koel_contains_url(NULL, "a", 1));
    IS(KOEL_ARGUMENT, koel_contains_url(f, NULL, 1));
    IS(KOEL_ARGUMENT, koel_contains_many(NULL, keys, 1, flags));
    IS(KOEL_ARGUMENT, koel_contains_many(f, NULL, 1, flags));
    IS(KOEL_ARGUMENT, koel_contains_many(f, keys, 2, flags));
    IS(KOEL_ARGUMENT, koel_contains_many(f, keys, 1, NULL));
    IS(KOEL_ARGUMENT, koel_contains_many(f, keys, SIZE_MAX, flags));
    IS(KOEL_ARGUMENT, koel_contains_hashes(NULL, &hash, 1, flags));
    IS(KOEL_ARGUMENT, koel_contains_hashes(f, NULL, 1, flags));
    IS(KOEL_ARGUMENT, koel_contains_hashes(f, &hash, 1, NULL));
    IS(KOEL_ARGUMENT, koel_hash(NULL, "a", 1, &hash));
    IS(KOEL_ARGUMENT, koel_hash(f, NULL, 1, &hash));
    IS(KOEL_ARGUMENT, koel_add(NULL, "a", 1, flags));
    IS(KOEL_ARGUMENT, koel_add(f, NULL, 1, flags));
    IS(KOEL_ARGUMENT, koel_add_hash(NULL, 1, flags));
    IS(KOEL_ARGUMENT, koel_add_many(NULL, keys, 1, flags));
    IS(KOEL_ARGUMENT, koel_add_many(f, NULL, 1, flags));
    IS(KOEL_ARGUMENT, koel_add_many(f, keys, 2, flags));
    IS(KOEL_ARGUMENT, koel_add_many(f, keys, 1, NULL));
    IS(KOEL_ARGUMENT, koel_add_copy(NULL, "a", 1));
    IS(KOEL_ARGUMENT, koel_add_copy(f, NULL, 1));
    IS(KOEL_ARGUMENT, koel_add_copy_hash(NULL, 1));
    IS(KOEL_ARGUMENT, koel_add_copies(NULL, keys, 1, counts));
    IS(KOEL_ARGUMENT, koel_add_copies(f, NULL, 1, counts));
    IS(KOEL_ARGUMENT, koel_remove(NULL, "a", 1, flags));
    IS(KOEL_ARGUMENT, koel_remove(f, NULL, 1, flags));
    IS(KOEL_ARGUMENT, koel_remove_hash(NULL, 1, flags));
    IS(KOEL_ARGUMENT, koel_remove_many(NULL, keys, 1, flags));
    IS(KOEL_ARGUMENT, koel_remove_many(f, NULL, 1, flags));
    IS(KOEL_ARGUMENT, koel_remove_many(f, keys, 1, NULL));
    IS(KOEL_ARGUMENT, koel_count(NULL, "a", 1, counts));
    IS(KOEL_ARGUMENT, koel_count(f, NULL, 1, counts));
    IS(KOEL_ARGUMENT, koel_count_hash(NULL, 1, counts));
    IS(KOEL_ARGUMENT, koel_count_many(NULL, keys, 1, counts));
    IS(KOEL_ARGUMENT, koel_count_many(f, NULL, 1, counts));
    IS(KOEL_ARGUMENT, koel_count_many(f, keys, 1, NULL));
    IS(KOEL_ARGUMENT, koel_refute(NULL, "a", 1, flags));
    IS(KOEL_ARGUMENT, koel_refute(f, NULL, 1, flags));
    IS(KOEL_ARGUMENT, koel_refute_hash(NULL, 1, flags));
    IS(KOEL_ARGUMENT, koel_refute_many(NULL, keys, 1, false, counts));
    IS(KOEL_ARGUMENT, koel_refute_many(f, NULL, 1, false, counts));
    IS(KOEL_ARGUMENT, koel_clear(NULL));
    IS(KOEL_ARGUMENT, koel_merge_sum(NULL, f));
    IS(KOEL_ARGUMENT, koel_merge_sum(f, NULL));
    IS(KOEL_ARGUMENT, koel_merge_sum(NULL, NULL));
    IS(KOEL_ARGUMENT, koel_merge_max(NULL, f));
    IS(KOEL_ARGUMENT, koel_merge_max(f, NULL));
    IS(KOEL_ARGUMENT, koel_patch_to(NULL, f, &bytes));
    IS(1, bytes.data == NULL && bytes.len == 0);
    IS(KOEL_ARGUMENT, koel_patch_to(f, NULL, &bytes));
    IS(KOEL_ARGUMENT, koel_patch_to(f, f, NULL));
    IS(KOEL_ARGUMENT, koel_patched(NULL, "a", 1, &made));
    IS(KOEL_ARGUMENT, koel_patched(f, NULL, 1, &made));
    IS(KOEL_ARGUMENT, koel_patched(f, "a", 1, NULL));
    IS(KOEL_ARGUMENT, koel_save(NULL, path));
    IS(KOEL_ARGUMENT, koel_save(f, NULL));
    IS(KOEL_ARGUMENT, koel_to_bytes(NULL, &bytes));
    IS(KOEL_ARGUMENT, koel_to_bytes(f, NULL));
    IS(KOEL_ARGUMENT, koel_describe(NULL, NULL));
    IS(KOEL_ARGUMENT, koel_line_options(NULL, &options));
    IS(1, options == NULL);
    IS(KOEL_ARGUMENT, koel_line_options(f, NULL));
    IS(0, strcmp(koel_last_error(), "the place for the result is NULL"));
    koel_free(NULL);
    koel_free_bytes(NULL);
}

// What need not be there is not: no answer is wanted, or a key or a batch is empty.
static void nothing_wanted(koel_filter *f) {
    koel_key none = {NULL, 0};
    bool flag;
    IS(KOEL_BYTES, koel_patched(f, NULL, 0, &(koel_filter *){NULL}));
    IS(KOEL_BYTES, koel_from_bytes(NULL, 0, &(koel_filter *){NULL}));
    IS(0, koel_contains(f, NULL, 0));
    IS(KOEL_OK, koel_add(f, NULL, 0, NULL));
    IS(1, koel_contains(f, NULL, 0));
    IS(1, koel_contains(f, "", 0));
    IS(KOEL_OK, koel_contains_many(f, &none, 1, &flag));
    IS(1, flag);
    IS(KOEL_OK, koel_add_copy(f, NULL, 0));
    IS(KOEL_OK, koel_count(f, NULL, 0, NULL));
    IS(KOEL_OK, koel_hash(f, NULL, 0, NULL));
    IS(KOEL_OK, koel_remove(f, NULL, 0, NULL));
    IS(KOEL_OK, koel_remove(f, NULL, 0, NULL));
    IS(0, koel_contains(f, NULL, 0));
    IS(KOEL_OK, koel_refute(f, NULL, 0, NULL));
    IS(KOEL_LINES, koel_contains_url(f, NULL, 0));
    IS(KOEL_OK, koel_describe(f, NULL));
    IS(KOEL_OK, koel_contains_many(f, NULL, 0, NULL));
    IS(KOEL_OK, koel_contains_hashes(f, NULL, 0, NULL));
    IS(KOEL_OK, koel_add_many(f, NULL, 0, NULL));
    IS(KOEL_OK, koel_add_copies(f, NULL, 0, NULL));
    IS(KOEL_OK, koel_remove_many(f, NULL, 0, NULL));
    IS(KOEL_OK, koel_count_many(f, NULL, 0, NULL));
    IS(KOEL_OK, koel_refute_many(f, NULL, 0, false, NULL));
}

// A key and its ready hash are one key.
static void ready_hashes(koel_filter *f) {
    uint64_t hash, count;
    bool done, found[2];
    IS(KOEL_OK, koel_hash(f, "ada", 3, &hash));
    IS(KOEL_OK, koel_add_hash(f, hash, &done));
    IS(1, done && koel_contains(f, "ada", 3) == 1 && koel_contains_hash(f, hash) == 1);
    IS(KOEL_OK, koel_add_copy_hash(f, hash));
    IS(KOEL_OK, koel_count_hash(f, hash, &count));
    IS(2, count);
    IS(KOEL_OK, koel_contains_hashes(f, (uint64_t[]){hash, ~hash}, 2, found));
    IS(1, found[0] && !found[1]);
    IS(KOEL_OK, koel_remove_hash(f, hash, &done));
    IS(KOEL_OK, koel_remove_hash(f, hash, &done));
    IS(1, done);
    IS(KOEL_OK, koel_remove_hash(f, hash, &done));
    IS(0, done);
    IS(KOEL_OK, koel_refute_hash(f, hash, &done));
    IS(0, done);
}

// A mapped file is asked, and not changed.
static void files(const koel_filter *f, const char *folder) {
    char path[4096], absent[4200];
    koel_filter *mapped = NULL, *copy = NULL;
    koel_info info;
    snprintf(path, sizeof path, "%s/list.koel", folder);
    snprintf(absent, sizeof absent, "%s/absent", path);
    IS(KOEL_IO, koel_open(folder, &mapped));
    IS(KOEL_IO, koel_open(absent, &mapped));
    IS(1, strstr(koel_last_error(), "list.koel/absent") != NULL);
    IS(KOEL_IO, koel_save(f, absent));
    FILE *empty = fopen(path, "wb");
    fclose(empty);
    IS(KOEL_BYTES, koel_open(path, &mapped));
    IS(KOEL_OK, koel_save(f, path));
    IS(KOEL_OK, koel_open(path, &mapped));
    IS(KOEL_OK, koel_verify(mapped));
    IS(KOEL_OK, koel_describe(mapped, &info));
    IS(1, info.read_only && info.capacity == 100);
    IS(KOEL_READ_ONLY, koel_add(mapped, "b", 1, NULL));
    IS(KOEL_READ_ONLY, koel_clear(mapped));
    IS(KOEL_READ_ONLY, koel_merge_sum(mapped, mapped));
    IS(KOEL_READ_ONLY, koel_refute_many(mapped, &(koel_key){"b", 1}, 1, true, NULL));
    IS(KOEL_OK, koel_copy(mapped, &copy));
    koel_free(mapped);
    IS(KOEL_OK, koel_add(copy, "b", 1, NULL));
    koel_free(copy);
    // Damage behind the header is found by those that look.
    FILE *damaged = fopen(path, "r+b");
    IS(0, fseek(damaged, 200, SEEK_SET));
    IS(1, fputc(0xff, damaged) != EOF && fclose(damaged) == 0);
    IS(KOEL_OK, koel_open(path, &mapped));
    IS(KOEL_BYTES, koel_verify(mapped));
    IS(KOEL_BYTES, koel_copy(mapped, &copy));
    IS(1, copy == NULL);
    koel_free(mapped);
}

// How much of a batch is in, where it does not fit.
static void full(void) {
    enum { COUNT = 3000 };
    static uint32_t numbers[COUNT];
    static koel_key keys[COUNT];
    static bool added[COUNT];
    koel_filter *f;
    koel_info info;
    uint64_t copies, sum = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        numbers[i] = i;
        keys[i] = (koel_key){&numbers[i], sizeof numbers[i]};
    }
    IS(KOEL_OK, koel_build(1000, 0.001, NULL, &f));
    IS(KOEL_FULL, koel_add_many(f, keys, COUNT, added));
    IS(KOEL_OK, koel_describe(f, &info));
    for (size_t i = 0; i < COUNT; i++) sum += added[i];
    IS(1, sum == info.len && sum >= 1000);
    IS(KOEL_OK, koel_clear(f));
    IS(KOEL_FULL, koel_add_copies(f, keys, COUNT, &copies));
    IS(KOEL_OK, koel_describe(f, &info));
    IS(1, copies == info.len && copies >= 1000);
    koel_free(f);
}

// A filter that is merged into itself.
static void merged(void) {
    koel_filter *f;
    uint64_t sum;
    IS(KOEL_OK, koel_build(1000, 0.001, NULL, &f));
    IS(KOEL_OK, koel_add(f, "ada", 3, NULL));
    IS(KOEL_OK, koel_merge_sum(f, f));
    IS(KOEL_OK, koel_count(f, "ada", 3, &sum));
    IS(2, sum);
    IS(KOEL_OK, koel_merge_max(f, f));
    IS(KOEL_OK, koel_count(f, "ada", 3, &sum));
    IS(2, sum);
    koel_free(f);
}

static void *ask(void *filter) {
    for (uint32_t i = 0; i < 100000; i++) {
        if (koel_contains(filter, &i, sizeof i) != (i < 100)) return NULL;
    }
    IS(KOEL_ARGUMENT, koel_contains(NULL, "", 0));
    return filter;
}

// Threads ask one filter; each has its own text.
static void threads(void) {
    pthread_t started[4];
    void *answer;
    koel_filter *f;
    IS(KOEL_OK, koel_build(100, 1e-7, NULL, &f));
    for (uint32_t i = 0; i < 100; i++) IS(KOEL_OK, koel_add(f, &i, sizeof i, NULL));
    IS(KOEL_SETTINGS, koel_build(1, 2, NULL, &(koel_filter *){NULL}));
    char before[200];
    snprintf(before, sizeof before, "%s", koel_last_error());
    for (int i = 0; i < 4; i++) IS(0, pthread_create(&started[i], NULL, ask, f));
    for (int i = 0; i < 4; i++) {
        IS(0, pthread_join(started[i], &answer));
        IS(1, answer == f);
    }
    IS(0, strcmp(before, koel_last_error()));
    koel_free(f);
}

int main(int count, char **arguments) {
    koel_filter *f = NULL;
    if (count != 2) return 2;
    IS(0, strcmp(koel_last_error(), ""));
    IS(1, strlen(koel_version()) >= 5);
    IS(KOEL_OK, koel_build(100, 0.001, NULL, &f));
    no_pointer(f, arguments[1]);
    nothing_wanted(f);
    ready_hashes(f);
    files(f, arguments[1]);
    koel_free(f);
    full();
    merged();
    threads();
    puts("C: NULL and length 0 are answered by every function");
    return 0;
}
