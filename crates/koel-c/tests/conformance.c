// Runs the scenarios of docs/conformance in C. The argument is a file of
// `cargo run -p testkit --example scenarios c`, the second a folder for a filter's file.

#include <cjson/cJSON.h>
#include <koel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 16
static struct { char name[32]; koel_filter *filter; koel_bytes patch; } named[MOST];
static char file[4096];

// The codes of docs/conformance/README.md, by the status below 0. The others are no answer to a
// scenario.
static const char *CODES[] = {"ok", "full", "settings", "bytes", "memory", "internal", "base",
                              "lines", "members", "range", "different", "io", "argument",
                              "read only"};

#define DIE(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))

static const cJSON *field(const cJSON *step, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(step, name);
}

static const char *text(const cJSON *step, const char *name) {
    const char *found = cJSON_GetStringValue(field(step, name));
    return found ? found : "";
}

static bool flag(const cJSON *step, const char *name) { return cJSON_IsTrue(field(step, name)); }

static double number(const cJSON *step, const char *name) {
    const cJSON *found = field(step, name);
    return found ? found->valuedouble : 0;
}

// The place of a name, which is new or was there.
static int at(const char *name) {
    for (int i = 0; i < MOST; i++) {
        if (!named[i].name[0]) snprintf(named[i].name, sizeof named[i].name, "%s", name);
        if (!strcmp(named[i].name, name)) return i;
    }
    DIE("too many names");
}

static koel_filter *of(const cJSON *step, const char *name) {
    return named[at(text(step, name))].filter;
}

// The bytes of hexadecimal digits, with one more in memory, so that none are not NULL.
static koel_bytes unhex(const char *digits) {
    koel_bytes bytes = {malloc(strlen(digits) / 2 + 1), strlen(digits) / 2};
    for (size_t i = 0; i < bytes.len; i++) sscanf(digits + 2 * i, "%2hhx", &bytes.data[i]);
    return bytes;
}

static cJSON *hex(const uint8_t *data, size_t len) {
    char *digits = malloc(2 * len + 1);
    for (size_t i = 0; i <= len; i++) sprintf(digits + 2 * i, i < len ? "%02x" : "", data[i % len]);
    cJSON *made = cJSON_CreateString(digits);
    free(digits);
    return made;
}

// A copy of bytes, changed as the step says.
static koel_bytes edited(const cJSON *step, const uint8_t *data, size_t len) {
    koel_bytes more = unhex(text(step, "append"));
    size_t kept = len - (size_t)number(step, "cut");
    koel_bytes bytes = {malloc(len + more.len + 1), kept + more.len};
    memcpy(bytes.data, data, len);
    if (field(step, "flip")) bytes.data[(size_t)number(step, "flip")] ^= 1;
    memcpy(bytes.data + kept, more.data, more.len);
    free(more.data);
    return bytes;
}

static int build(const cJSON *step, koel_filter **filter) {
    koel_options options = {0};
    uint64_t seed = strtoull(text(step, "seed"), NULL, 10);
    koel_bytes secret = unhex(text(step, "secret"));
    options.grow = flag(step, "grow");
    options.grow_from = (uint64_t)number(step, "grow_from");
    options.fast = !strcmp(text(step, "prefer"), "fast");
    options.seed = field(step, "seed") ? &seed : NULL;
    options.secret = secret.len ? secret.data : NULL;
    double rate = field(step, "rate") ? number(step, "rate") : 0.001;
    int status = koel_build(strtoull(text(step, "capacity"), NULL, 10), rate, &options, filter);
    free(secret.data);
    return status;
}

static int open_image(const cJSON *step, koel_filter **filter) {
    koel_bytes image = {0}, changed;
    if (field(step, "image")) {
        koel_bytes given = unhex(text(step, "image"));
        changed = edited(step, given.data, given.len);
        free(given.data);
    } else {
        if (koel_to_bytes(of(step, "of"), &image)) DIE("%s", koel_last_error());
        changed = edited(step, image.data, image.len);
        koel_free_bytes(&image);
    }
    int status = koel_from_bytes(changed.data, changed.len, filter);
    free(changed.data);
    return status;
}

// Through a file, which is opened in place.
static int reopen(const koel_filter *old, koel_filter **filter) {
    koel_filter *mapped;
    int status = koel_save(old, file);
    if (status || (status = koel_open(file, &mapped))) return status;
    status = koel_copy(mapped, filter);
    koel_free(mapped);
    return status;
}

// Makes a filter, if the verb does. Otherwise the status is 1.
static int make(const char *verb, const cJSON *step, const char *name) {
    koel_filter *made = NULL;
    int status = 1;
    if (!strcmp(verb, "build")) status = build(step, &made);
    if (!strcmp(verb, "open") || !strcmp(verb, "list")) status = open_image(step, &made);
    if (!strcmp(verb, "copy")) status = koel_copy(of(step, "of"), &made);
    if (!strcmp(verb, "reopen")) status = reopen(named[at(name)].filter, &made);
    if (!strcmp(verb, "patched")) {
        koel_bytes *kept = &named[at(text(step, "patch"))].patch;
        koel_bytes patch = edited(step, kept->data, kept->len);
        status = koel_patched(of(step, "of"), patch.data, patch.len, &made);
        free(patch.data);
    }
    if (status == 0) {
        koel_free(named[at(name)].filter);
        named[at(name)].filter = made;
    }
    return status;
}

static int yes(int answer, cJSON **is) {
    if (answer >= 0) *is = cJSON_CreateBool(answer);
    return answer < 0 ? answer : 0;
}

// What a filter tells of itself.
static int tell(const char *verb, koel_filter *filter, cJSON **is) {
    koel_info info;
    const char *options;
    koel_bytes bytes = {0};
    int status = koel_describe(filter, &info);
    if (!strcmp(verb, "len")) *is = cJSON_CreateNumber((double)info.len);
    if (!strcmp(verb, "capacity")) *is = cJSON_CreateNumber((double)info.capacity);
    if (!strcmp(verb, "rate")) *is = cJSON_CreateNumber(info.rate);
    if (!strcmp(verb, "corrections")) *is = cJSON_CreateNumber((double)info.corrections);
    if (!strcmp(verb, "growable")) *is = cJSON_CreateBool(info.growable);
    if (!strcmp(verb, "grown")) *is = cJSON_CreateBool(info.grown);
    if (!strcmp(verb, "header")) {
        status = koel_to_bytes(filter, &bytes);
        if (!status && bytes.len == info.size) *is = hex(bytes.data, 192);
        koel_free_bytes(&bytes);
    }
    if (!strcmp(verb, "line_options")) {
        status = koel_line_options(filter, &options);
        if (!status) *is = cJSON_CreateString(options);
    }
    if (!status && !*is) DIE("no verb %s", verb);
    return status;
}

// A verb with one key.
static int one(const char *verb, const cJSON *step, koel_filter *filter, cJSON **is) {
    koel_bytes key = unhex(text(step, "key"));
    bool done = true;
    uint64_t count = 0;
    int status = 0;
    if (!strcmp(verb, "contains")) status = koel_contains(filter, key.data, key.len);
    if (status == 1 || status == 0) done = status, status = 0;
    if (!strcmp(verb, "add") && flag(step, "copies")) {
        status = koel_add_copy(filter, key.data, key.len), done = true;
    } else if (!strcmp(verb, "add")) {
        status = koel_add(filter, key.data, key.len, &done);
    }
    if (!strcmp(verb, "remove")) status = koel_remove(filter, key.data, key.len, &done);
    if (!strcmp(verb, "refute")) status = koel_refute(filter, key.data, key.len, &done);
    if (!strcmp(verb, "count")) status = koel_count(filter, key.data, key.len, &count);
    if (!status) *is = strcmp(verb, "count") ? cJSON_CreateBool(done) : cJSON_CreateNumber((double)count);
    free(key.data);
    return status;
}

// A verb with many keys.
static int many(const char *verb, const cJSON *step, koel_filter *filter, cJSON **is) {
    size_t count = (size_t)cJSON_GetArraySize(field(step, "keys")), i = 0;
    koel_key *keys = malloc(count * sizeof *keys + 1);
    bool *flags = calloc(count + 1, sizeof *flags);
    uint64_t *counts = calloc(count + 1, sizeof *counts), sum = 0;
    const cJSON *digits;
    cJSON_ArrayForEach(digits, field(step, "keys")) {
        koel_bytes key = unhex(digits->valuestring);
        keys[i++] = (koel_key){key.data, key.len};
    }
    int status = 1;
    bool sums = false, counted = false;
    if (!strcmp(verb, "add_many") && flag(step, "copies")) {
        sums = true, status = koel_add_copies(filter, keys, count, &sum);
    } else if (!strcmp(verb, "add_many")) {
        status = koel_add_many(filter, keys, count, flags);
    }
    if (!strcmp(verb, "refute_many")) {
        sums = true, status = koel_refute_many(filter, keys, count, flag(step, "force"), &sum);
    }
    if (!strcmp(verb, "remove_many")) status = koel_remove_many(filter, keys, count, flags);
    if (!strcmp(verb, "contains_many")) status = koel_contains_many(filter, keys, count, flags);
    if (!strcmp(verb, "count_many")) {
        counted = true, status = koel_count_many(filter, keys, count, counts);
    }
    if (status == 1) DIE("no verb %s", verb);
    if (!status && sums) *is = cJSON_CreateNumber((double)sum);
    if (!status && !sums) {
        *is = cJSON_CreateArray();
        for (i = 0; i < count; i++) {
            cJSON_AddItemToArray(*is, counted ? cJSON_CreateNumber((double)counts[i])
                                              : cJSON_CreateBool(flags[i]));
        }
    }
    for (i = 0; i < count; i++) free((void *)keys[i].data);
    free(keys), free(flags), free(counts);
    return status;
}

// Does a step. Returns its status, and its answer if it has one.
static int run(const cJSON *step, cJSON **is) {
    const char *verb = text(step, "do");
    const char *name = field(step, "filter") ? text(step, "filter") : "f";
    int status = make(verb, step, name);
    if (status != 1) return status;
    koel_filter *filter = named[at(name)].filter;
    if (field(step, "key")) return one(verb, step, filter, is);
    if (field(step, "keys")) return many(verb, step, filter, is);
    if (!strcmp(verb, "contains_url")) {
        return yes(koel_contains_url(filter, text(step, "url"), strlen(text(step, "url"))), is);
    }
    if (!strcmp(verb, "clear")) return koel_clear(filter);
    if (!strcmp(verb, "merge")) {
        bool sum = !strcmp(text(step, "counts"), "sum");
        return (sum ? koel_merge_sum : koel_merge_max)(filter, of(step, "with"));
    }
    if (!strcmp(verb, "bytes")) {
        koel_bytes a, b;
        if (koel_to_bytes(filter, &a) || koel_to_bytes(of(step, "with"), &b)) DIE("no bytes");
        *is = cJSON_CreateBool(a.len == b.len && !memcmp(a.data, b.data, a.len));
        koel_free_bytes(&a), koel_free_bytes(&b);
        return 0;
    }
    if (!strcmp(verb, "patch")) {
        koel_bytes *patch = &named[at(text(step, "patch"))].patch;
        koel_free_bytes(patch);
        status = koel_patch_to(of(step, "from"), of(step, "to"), patch);
        if (!status) *is = hex(patch->data, patch->len);
        return status;
    }
    return tell(verb, filter, is);
}

// Of many keys, a number stands for the sum of the answers.
static double sum_of(const cJSON *is) {
    const cJSON *one;
    double sum = cJSON_IsArray(is) ? 0 : is->valuedouble;
    cJSON_ArrayForEach(one, is) sum += cJSON_IsNumber(one) ? one->valuedouble : cJSON_IsTrue(one);
    return sum;
}

static bool accepts(const cJSON *step, int status, const cJSON *is) {
    const cJSON *wanted = field(step, "is"), *most = field(step, "at_most");
    if (status || field(step, "error")) return !strcmp(CODES[-status], text(step, "error"));
    if (most) return sum_of(is) <= most->valuedouble;
    if (!wanted) return true;
    if (cJSON_IsNumber(wanted)) return is && sum_of(is) == wanted->valuedouble;
    return cJSON_Compare(is, wanted, true);
}

int main(int count, char **arguments) {
    if (count != 3) DIE("usage: conformance SCENARIOS FOLDER");
    snprintf(file, sizeof file, "%s/filter.koel", arguments[2]);
    FILE *stream = fopen(arguments[1], "rb");
    if (!stream) DIE("no %s", arguments[1]);
    fseek(stream, 0, SEEK_END);
    size_t len = (size_t)ftell(stream);
    char *json = calloc(len + 1, 1);
    rewind(stream);
    if (fread(json, 1, len, stream) != len) DIE("cannot read %s", arguments[1]);
    fclose(stream);
    cJSON *scenarios = cJSON_Parse(json), *scenario, *step;
    int ran = 0, failed = 0;
    cJSON_ArrayForEach(scenario, scenarios) {
        int at_step = 0;
        cJSON_ArrayForEach(step, field(scenario, "steps")) {
            cJSON *is = NULL;
            int status = run(step, &is);
            bool right = accepts(step, status, is);
            at_step++;
            if (!right) {
                char *shown = is ? cJSON_PrintUnformatted(is) : NULL;
                fprintf(stderr, "%s, step %d: %s answers %s %.200s (%s)\n", text(scenario, "place"),
                        at_step, text(step, "do"), CODES[-status], shown ? shown : "",
                        koel_last_error());
                free(shown);
                failed++;
            }
            cJSON_Delete(is);
            if (!right) break;
        }
        for (int i = 0; i < MOST; i++) koel_free(named[i].filter), koel_free_bytes(&named[i].patch);
        memset(named, 0, sizeof named);
        ran++;
    }
    cJSON_Delete(scenarios);
    free(json);
    printf("C: ran %d scenarios, %d failed\n", ran, failed);
    return ran == 0 || failed > 0;
}
