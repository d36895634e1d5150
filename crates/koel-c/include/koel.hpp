// Koel for C++17: a class of which each filter is an object. Header only; link with libkoel.
//
//     koel::filter seen(1'000'000, 0.001);
//     seen.add("ada");
//     bool in = seen.contains("ada");
//
// A key is a std::string_view of its bytes. An error is a koel::error, with the status of koel.h.
// Filters move and are not copied, but for copy(). Const methods may run in any number of threads
// at once; the others need the filter alone. koel.h says what each function does.

#ifndef KOEL_HPP
#define KOEL_HPP

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "koel.h"

namespace koel {

class error : public std::runtime_error {
public:
    explicit error(koel_status status) : std::runtime_error(koel_last_error()), status(status) {}
    const koel_status status;
};

struct options {
    bool grow = false, fast = false;
    std::uint64_t grow_from = 0;
    std::optional<std::uint64_t> seed;
    std::optional<std::array<std::uint8_t, 16>> secret;
};

class filter {
public:
    filter(std::uint64_t capacity, double rate, const options &with = {}) {
        koel_options c = {};
        c.grow = with.grow, c.fast = with.fast, c.grow_from = with.grow_from;
        c.seed = with.seed ? &*with.seed : nullptr;
        c.secret = with.secret ? with.secret->data() : nullptr;
        check(koel_build(capacity, rate, &c, &raw));
    }
    static filter open(const std::string &path) {
        return made([&](koel_filter **to) { return koel_open(path.c_str(), to); });
    }
    static filter from_bytes(std::string_view image) {
        return made([&](auto to) { return koel_from_bytes(image.data(), image.size(), to); });
    }
    filter copy() const {
        return made([&](koel_filter **to) { return koel_copy(raw, to); });
    }
    filter patched(std::string_view by) const {
        return made([&](auto to) { return koel_patched(raw, by.data(), by.size(), to); });
    }
    filter(filter &&other) noexcept : raw(std::exchange(other.raw, nullptr)) {}
    filter &operator=(filter &&other) noexcept { return std::swap(raw, other.raw), *this; }
    ~filter() { koel_free(raw); }

    bool contains(std::string_view key) const {
        return yes(koel_contains(raw, key.data(), key.size()));
    }
    bool contains_hash(std::uint64_t hash) const { return yes(koel_contains_hash(raw, hash)); }
    bool contains_url(std::string_view url) const {
        return yes(koel_contains_url(raw, url.data(), url.size()));
    }
    std::uint64_t count(std::string_view key) const {
        return get<std::uint64_t>(koel_count, raw, key.data(), key.size());
    }
    std::uint64_t hash(std::string_view key) const {
        return get<std::uint64_t>(koel_hash, raw, key.data(), key.size());
    }
    koel_info info() const { return get<koel_info>(koel_describe, raw); }
    std::string line_options() const { return get<const char *>(koel_line_options, raw); }
    void verify() const { check(koel_verify(raw)); }
    void save(const std::string &path) const { check(koel_save(raw, path.c_str())); }
    std::string to_bytes() const { return text(get<koel_bytes>(koel_to_bytes, raw)); }
    std::string patch_to(const filter &newer) const {
        return text(get<koel_bytes>(koel_patch_to, raw, newer.raw));
    }

    bool add(std::string_view key) { return get<bool>(koel_add, raw, key.data(), key.size()); }
    void add_copy(std::string_view key) { check(koel_add_copy(raw, key.data(), key.size())); }
    bool remove(std::string_view key) { return get<bool>(koel_remove, raw, key.data(), key.size()); }
    bool refute(std::string_view key) { return get<bool>(koel_refute, raw, key.data(), key.size()); }
    void merge_sum(const filter &other) { check(koel_merge_sum(raw, other.raw)); }
    void merge_max(const filter &other) { check(koel_merge_max(raw, other.raw)); }
    void clear() { check(koel_clear(raw)); }

    // Many keys: any range of what converts to std::string_view.
    template <class Keys> std::vector<bool> contains_many(const Keys &keys) const {
        return each<bool>(koel_contains_many, raw, keys);
    }
    template <class Keys> std::vector<std::uint64_t> count_many(const Keys &keys) const {
        return each<std::uint64_t>(koel_count_many, raw, keys);
    }
    template <class Keys> std::vector<bool> add_many(const Keys &keys) {
        return each<bool>(koel_add_many, raw, keys);
    }
    template <class Keys> std::uint64_t add_copies(const Keys &keys) {
        const auto all = array(keys);
        return get<std::uint64_t>(koel_add_copies, raw, all.data(), all.size());
    }
    template <class Keys> std::vector<bool> remove_many(const Keys &keys) {
        return each<bool>(koel_remove_many, raw, keys);
    }
    template <class Keys> std::uint64_t refute_many(const Keys &keys, bool force = false) {
        const auto all = array(keys);
        return get<std::uint64_t>(koel_refute_many, raw, all.data(), all.size(), force);
    }

    // For the functions of koel.h that are not here. Null in a filter that was moved from.
    koel_filter *get() noexcept { return raw; }
    const koel_filter *get() const noexcept { return raw; }

private:
    filter() = default;
    koel_filter *raw = nullptr;

    static void check(int status) {
        if (status < 0) throw error(static_cast<koel_status>(status));
    }
    static bool yes(int answer) { return check(answer), answer == 1; }
    template <class Make> static filter made(Make make) {
        filter one;
        check(make(&one.raw));
        return one;
    }
    // The answer that a function writes through its last pointer.
    template <class T, class Function, class... Arguments>
    static T get(Function function, Arguments... arguments) {
        T answer = {};
        return check(function(arguments..., &answer)), answer;
    }
    static std::string text(koel_bytes bytes) {
        const auto free = [](koel_bytes *it) { koel_free_bytes(it); };
        const std::unique_ptr<koel_bytes, decltype(free)> owner(&bytes, free);
        return std::string(reinterpret_cast<const char *>(bytes.data), bytes.len);
    }
    template <class Keys> static std::vector<koel_key> array(const Keys &keys) {
        std::vector<koel_key> all;
        for (const std::string_view key : keys) all.push_back({key.data(), key.size()});
        return all;
    }
    // The answers of a function for many keys.
    template <class T, class Function, class Raw, class Keys>
    static std::vector<T> each(Function function, Raw raw, const Keys &keys) {
        const auto all = array(keys);
        const std::unique_ptr<T[]> answers(new T[all.size()]());
        check(function(raw, all.data(), all.size(), answers.get()));
        return std::vector<T>(answers.get(), answers.get() + all.size());
    }
};

} // namespace koel

#endif
