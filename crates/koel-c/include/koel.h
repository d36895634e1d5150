/*
 * Koel: cuckoo filters. Made of crates/koel-c/src by cbindgen; do not edit.
 *
 * A filter holds keys in a few bits each. It always finds the keys that it holds. It reports an
 * absent key at a false-positive rate that you choose. Keys can be removed again.
 *
 *     koel_filter *seen;
 *     if (koel_build(1000000, 0.001, NULL, &seen) != KOEL_OK) {
 *         fprintf(stderr, "%s\n", koel_last_error());
 *         return 1;
 *     }
 *     koel_add(seen, "ada", 3, NULL);
 *     if (koel_contains(seen, "ada", 3)) puts("in, or one time in a thousand not");
 *     koel_free(seen);
 *
 * KEYS are bytes. All doors of Koel make the same bytes of a key: a text is its UTF-8 without the
 * zero byte at its end, an integer is eight bytes, the least significant first. The keys of a filter
 * that `koel build` made of a list of hosts, or with --ignore-case and the like, are asked for as
 * texts, which become keys as the lines of the list did.
 *
 * ERRORS. A function returns KOEL_OK or an error below 0, and koel_last_error() has a sentence. The
 * functions that ask, koel_contains, koel_contains_hash and koel_contains_url, return 1, 0, or the
 * error: so an error is never taken for "absent". After an error nothing has changed, unless the
 * function says otherwise.
 *
 * POINTERS. Any pointer may be NULL: KOEL_ARGUMENT if the function cannot do without. A pointer to
 * bytes, keys or hashes is followed by as many as the length says, and may be NULL if that is 0. A
 * text that has no length ends with a zero byte. Arrays for answers have room for one answer for
 * each key. The library keeps no pointer after a call.
 *
 * THREADS. Any number of threads may ask one filter at the same time: all functions that take a
 * `const koel_filter *`. A function that takes a `koel_filter *` changes or frees it, and needs it
 * alone: hold a lock, which those that ask hold too (such as a pthread_rwlock_t). Different filters
 * need no lock.
 *
 * LIMITS. A filter does not store its keys, so it cannot list them. Remove only keys that were
 * added.
 */


#ifndef KOEL_H
#define KOEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a function of koel.h returns. Below 0 it is the kind of an error, and koel_last_error()
// has its text. After an error nothing has changed, unless the function says otherwise.
typedef enum koel_status {
    // It worked.
    KOEL_OK = 0,
    // No room for a key, a counter or a correction.
    KOEL_FULL = -1,
    // No filter can be built with these settings.
    KOEL_SETTINGS = -2,
    // The bytes are not a sound filter or patch.
    KOEL_BYTES = -3,
    // The system has no memory.
    KOEL_MEMORY = -4,
    // An error in Koel, which should be reported. Free the filter that was to be changed.
    KOEL_INTERNAL = -5,
    // A patch is for another filter, or was applied already.
    KOEL_BASE = -6,
    // The keys of the filter were made of lines, and this text gives none: it has no host where
    // keys are hosts, or this version does not know the line options.
    KOEL_LINES = -7,
    // More keys that were to be refuted are reported than chance explains.
    KOEL_MEMBERS = -8,
    // A count would pass 2^64 - 1.
    KOEL_RANGE = -9,
    // Two filters were not built alike.
    KOEL_DIFFERENT = -10,
    // A file cannot be read or written.
    KOEL_IO = -11,
    // A pointer is NULL that may not be, or a length is beyond all memory.
    KOEL_ARGUMENT = -12,
    // The filter was opened with koel_open, so it cannot be changed: use koel_copy.
    KOEL_READ_ONLY = -13,
} koel_status;

// A filter. Its bytes are in memory, or in a file that koel_open mapped.
typedef struct koel_filter koel_filter;

// What koel_build may be given besides capacity and rate. A field that is 0, false or NULL is as
// if it was not given, so start with `koel_options options = {0}`.
typedef struct koel_options {
    // Grow beyond the capacity instead of returning KOEL_FULL.
    bool grow;
    // Optimise for speed instead of size.
    bool fast;
    // Start with room for so many keys, and grow to the capacity and beyond.
    uint64_t grow_from;
    // The seed of the hash. Filters with different seeds cannot be merged.
    const uint64_t *seed;
    // 16 secret bytes. Keys are then hashed with SipHash-1-3, for keys that an adversary may
    // choose. Files contain the secret.
    const uint8_t *secret;
} koel_options;

// A key in an array of keys: bytes that the caller owns.
typedef struct koel_key {
    // Where it starts. May be NULL if it has no bytes.
    const void *data;
    // Its bytes.
    size_t len;
} koel_key;

// Bytes that a function made. koel_free_bytes() frees them.
typedef struct koel_bytes {
    // The first of them.
    uint8_t *data;
    // How many there are.
    size_t len;
} koel_bytes;

// What koel_describe tells of a filter.
typedef struct koel_info {
    // Keys that are in, copies included.
    uint64_t len;
    // Distinct keys that it was built for.
    uint64_t capacity;
    // Corrections: keys known to be absent that would be reported.
    uint64_t corrections;
    // Bytes of its file.
    uint64_t size;
    // The false-positive rate that it was built for.
    double rate;
    // The false-positive rate as it is now: lower until it is full.
    double current_rate;
    // Whether it grows when it is full, instead of refusing keys.
    bool growable;
    // Whether it has outgrown the table that it was built with.
    bool grown;
    // Whether it was opened with koel_open, and cannot be changed.
    bool read_only;
} koel_info;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library, such as "0.1.0".
const char *koel_version(void);

// The text of the last error in this thread: a sentence in UTF-8, without a line break at its end.
// Never NULL. It is the library's, and the next error in this thread replaces it.
const char *koel_last_error(void);

// Builds an empty filter for so many distinct keys, which always fit, each any number of times.
//
// An absent key is reported with probability `rate` when the filter is full, and with at most 1.35
// times that once it has grown. It is above 0 and below 1, such as 0.001. `options` may be NULL.
// koel_free() frees the filter.
//
// KOEL_SETTINGS if no filter can be built like this, KOEL_MEMORY.
enum koel_status koel_build(uint64_t capacity,
                            double rate,
                            const struct koel_options *options,
                            struct koel_filter **filter);

// Opens a file that any Koel program saved, to be asked only. Constant time, and no memory of its
// own: the file is mapped, and programs share its pages. koel_free() frees the filter.
//
// Only the header is checked: koel_verify() checks the rest. Damage never makes a call unsafe, but
// answers wrong. While the file is open, replace it (as koel_save does), but do not write into it
// or cut it short: that ends the program with SIGBUS.
//
// KOEL_IO, and KOEL_BYTES if the header is not that of a filter, or the length not that of it.
enum koel_status koel_open(const char *path, struct koel_filter **filter);

// Reads the bytes of a file, copies them and checks all of them. koel_free() frees the filter.
//
// KOEL_BYTES if they are not a sound filter, KOEL_MEMORY.
enum koel_status koel_from_bytes(const void *data, size_t len, struct koel_filter **filter);

// A copy in memory, which can be changed. All bytes of a filter of koel_open are checked: so
// koel_open and koel_copy load a file. koel_free() frees the copy.
//
// KOEL_BYTES if the file is damaged, KOEL_MEMORY.
enum koel_status koel_copy(const struct koel_filter *filter, struct koel_filter **copy);

// Frees a filter. NULL is allowed.
void koel_free(struct koel_filter *filter);

// Checks every byte of a filter of koel_open. KOEL_BYTES with the first fault.
enum koel_status koel_verify(const struct koel_filter *filter);

// Whether a key is in: 1, 0, or a koel_status below 0.
//
// Never 0 for a key that is in. 1 for an absent key with the probability `current_rate` of
// koel_describe(). Reads two places of the table.
//
// KOEL_LINES if keys were made of lines and this text gives none.
int koel_contains(const struct koel_filter *filter, const void *key, size_t len);

// koel_contains() for a ready hash: that of koel_hash(), or any other 64 bits that distinguish
// keys and were added as such.
int koel_contains_hash(const struct koel_filter *filter, uint64_t hash);

// Whether the host of a URL, or one of its parent domains, is in: 1, 0, or a koel_status below 0.
// Where keys are texts, also whether the URL itself is.
//
// KOEL_LINES if the text has no host, and is not in itself.
int koel_contains_url(const struct koel_filter *filter, const void *url, size_t len);

// koel_contains() for many keys, some times as fast. `found[i]` is the answer for `keys[i]`.
//
// KOEL_LINES for the first text that gives no key; KOEL_MEMORY. Then nothing is said of any key.
enum koel_status koel_contains_many(const struct koel_filter *filter,
                                    const struct koel_key *keys,
                                    size_t count,
                                    bool *found);

// koel_contains_hash() for many ready hashes. `found[i]` is the answer for `hashes[i]`.
enum koel_status koel_contains_hashes(const struct koel_filter *filter,
                                      const uint64_t *hashes,
                                      size_t count,
                                      bool *found);

// The ready hash of a key, which stands for it in every filter with this hash and line options.
//
// KOEL_LINES if keys were made of lines and this text gives none.
enum koel_status koel_hash(const struct koel_filter *filter,
                           const void *key,
                           size_t len,
                           uint64_t *hash);

// Adds a key unless the filter reports it. `added` says whether it was added; it may be NULL.
//
// A false positive is not added either, and is absent once the key whose entry it shares is
// removed. So use koel_add_copy() if you will remove keys. At most two searches of 8192 slots
// each, and two steps of growth of 4096 buckets each.
//
// KOEL_FULL if there is no room and it cannot grow, KOEL_LINES, KOEL_MEMORY.
enum koel_status koel_add(struct koel_filter *filter, const void *key, size_t len, bool *added);

// koel_add() for a ready hash.
enum koel_status koel_add_hash(struct koel_filter *filter, uint64_t hash, bool *added);

// koel_add() for each of `keys`, in order. `added[i]` says whether `keys[i]` was added.
//
// KOEL_FULL at the first key that finds no room. Those before it are in, and of a large filter
// some after it: `added` says which. KOEL_MEMORY: the same; none if there was no memory for their
// hashes. KOEL_LINES: none is in.
enum koel_status koel_add_many(struct koel_filter *filter,
                               const struct koel_key *keys,
                               size_t count,
                               bool *added);

// Adds a copy of a key, also of one that is in: it must be removed as often as it was added.
//
// KOEL_FULL if there is no room and it cannot grow, KOEL_LINES, KOEL_MEMORY.
enum koel_status koel_add_copy(struct koel_filter *filter, const void *key, size_t len);

// koel_add_copy() for a ready hash.
enum koel_status koel_add_copy_hash(struct koel_filter *filter, uint64_t hash);

// koel_add_copy() for each of `keys`, in order. `added` says how many were; it may be NULL.
//
// KOEL_FULL and KOEL_MEMORY at the first key that finds no room: the `added` keys before it are
// in. KOEL_LINES: none is in.
enum koel_status koel_add_copies(struct koel_filter *filter,
                                 const struct koel_key *keys,
                                 size_t count,
                                 uint64_t *added);

// Removes a copy of a key. `removed` says whether there was one; it may be NULL.
//
// Remove only keys that were added: another key may have the fingerprint of one that is in, and
// would take that out.
//
// KOEL_LINES.
enum koel_status koel_remove(struct koel_filter *filter,
                             const void *key,
                             size_t len,
                             bool *removed);

// koel_remove() for a ready hash.
enum koel_status koel_remove_hash(struct koel_filter *filter, uint64_t hash, bool *removed);

// koel_remove() for each of `keys`, in order. `removed[i]` says whether a copy of `keys[i]` was.
//
// KOEL_LINES and KOEL_MEMORY: none is removed.
enum koel_status koel_remove_many(struct koel_filter *filter,
                                  const struct koel_key *keys,
                                  size_t count,
                                  bool *removed);

// How often a key was added and not removed. Never too low. Too high with the probability
// `current_rate` of koel_describe(), by the count of another key.
//
// KOEL_LINES.
enum koel_status koel_count(const struct koel_filter *filter,
                            const void *key,
                            size_t len,
                            uint64_t *count);

// koel_count() for a ready hash.
enum koel_status koel_count_hash(const struct koel_filter *filter, uint64_t hash, uint64_t *count);

// koel_count() for many keys. `counts[i]` is the answer for `keys[i]`.
//
// KOEL_LINES for the first text that gives no key; KOEL_MEMORY.
enum koel_status koel_count_many(const struct koel_filter *filter,
                                 const struct koel_key *keys,
                                 size_t count,
                                 uint64_t *counts);

// Tells the filter that a key was not added. If the filter reports it, it gets a correction, and
// is not reported any more. `corrected` says whether it got one; it may be NULL.
//
// Never refute a key that is in: it would be hidden. Adding the key takes its correction back.
//
// KOEL_FULL if there are as many corrections as slots, KOEL_LINES, KOEL_MEMORY.
enum koel_status koel_refute(struct koel_filter *filter,
                             const void *key,
                             size_t len,
                             bool *corrected);

// koel_refute() for a ready hash.
enum koel_status koel_refute_hash(struct koel_filter *filter, uint64_t hash, bool *corrected);

// koel_refute() for each of `keys`, all or none. `corrections` says how many were made; it may be
// NULL.
//
// KOEL_MEMBERS if more of them are reported than chance explains: some seem to be in, and would be
// hidden. With `force` they are refuted all the same. A handful may always be refuted.
// KOEL_FULL, KOEL_LINES, KOEL_MEMORY.
enum koel_status koel_refute_many(struct koel_filter *filter,
                                  const struct koel_key *keys,
                                  size_t count,
                                  bool force,
                                  uint64_t *corrections);

// Removes all keys and all corrections. The size stays.
enum koel_status koel_clear(struct koel_filter *filter);

// Adds the keys of `other`, and adds up the counts of each key: for filters of different events.
//
// Both were built alike: the same capacity, rate, options and hash. Their false-positive rates add
// up, but stay within the rate that they were built for while both have room for the union.
// `other` may be `filter` itself. Takes twice the memory until it returns.
//
// KOEL_DIFFERENT if they were not built alike, KOEL_FULL if the union does not fit and does not
// grow, KOEL_RANGE if a count would pass 64 bits, KOEL_BYTES if `other` is damaged, KOEL_MEMORY.
enum koel_status koel_merge_sum(struct koel_filter *filter, const struct koel_filter *other);

// koel_merge_sum(), with the larger of both counts of each key: for filters of the same events.
enum koel_status koel_merge_max(struct koel_filter *filter, const struct koel_filter *other);

// What changed from this filter to `newer`, some 2 bytes a change, for koel_patched().
// koel_free_bytes() frees it.
//
// Both were built alike. Takes time for each byte of both, and the memory of a copy.
//
// KOEL_DIFFERENT if they were not built alike, KOEL_FULL if the new keys find no room in this
// filter, KOEL_BYTES if one of them is damaged, KOEL_MEMORY.
enum koel_status koel_patch_to(const struct koel_filter *filter,
                               const struct koel_filter *newer,
                               struct koel_bytes *patch);

// The filter that a patch of koel_patch_to() makes of this one, which stays as it is. All of it is
// checked. koel_free() frees it.
//
// KOEL_BYTES if the patch is damaged, KOEL_BASE if it is for another filter or was applied
// already, KOEL_FULL, KOEL_MEMORY.
enum koel_status koel_patched(const struct koel_filter *filter,
                              const void *patch,
                              size_t len,
                              struct koel_filter **patched);

// Saves to a file: writes a new one beside it, syncs it and renames it. So a crash leaves the old
// file or the new one. A new file can be read by its owner only; an old one keeps its permissions.
//
// KOEL_IO. Then the old file is there, unless the text says that it was replaced and only its
// folder could not be synced.
enum koel_status koel_save(const struct koel_filter *filter, const char *path);

// The bytes of its file. koel_free_bytes() frees them. KOEL_MEMORY.
enum koel_status koel_to_bytes(const struct koel_filter *filter, struct koel_bytes *bytes);

// Frees bytes, and leaves none: a second call does nothing. NULL is allowed.
void koel_free_bytes(struct koel_bytes *bytes);

// How many keys are in, the size, the rate and so on. Constant time.
enum koel_status koel_describe(const struct koel_filter *filter, struct koel_info *info);

// The options of `koel build` by which the keys were made of lines, such as "--format hosts", or
// "" where every key is its own bytes. The text is the filter's, until that is freed.
//
// KOEL_LINES if this version does not know them.
enum koel_status koel_line_options(const struct koel_filter *filter, const char **options);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* KOEL_H */
